// Package upstream is one raw connection to one MCP server.
//
// [Dial] starts the child or reaches the URL, finds out which protocol the
// server speaks (newest first, falling back on any other answer or on silence), and
// returns a [Conn]. [Conn.Do] sends one request and returns the raw result:
// nothing is decoded on the way but the envelope, so unknown fields, big integers
// and unknown content types arrive as they were sent. On top of Do are
// [Conn.List] (all pages, limited), [Conn.Call] (answers server requests, in either
// protocol) and [Conn.Listen] (change notifications, reopened).
//
// The way of a request:
//
//	Conn.Do ─ edits _meta for the protocol, maps the progress token
//	  └ link.roundTrip
//	       ├ stdioLink    one line to the child, the mux hands the answer back
//	       ├ httpLink     one POST, answered by JSON or by an event stream
//	       └ oldSSELink   one POST, answered on the one event stream (mux)
//
// Failures are typed, see errors.go: callers decide with errors.Is and errors.As
// whether a retry is safe, a login is needed, or the peer misbehaved. The package
// does not retry, restart, log in or keep anything: that is supervision, and lives
// in host.
package upstream
