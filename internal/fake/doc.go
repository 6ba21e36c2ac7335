// Package fake is an MCP server that misbehaves on demand.
//
// One [Server] speaks every protocol version over stdio ([Server.ServeStdio]),
// Streamable HTTP of the legacy and the stateless protocol on one URL
// ([Server.Handler]) and the old HTTP+SSE ([Server.SSEHandler]). Without switches it
// behaves well. Each switch of [Switches] turns on one misbehaviour, for all messages
// or for some methods, permanently or a number of times:
//
//	fake.New(&fake.Options{Switches: []string{"wrongid", "latency=50;on=tools/list;times=1"}})
//
// Everything it is asked and everything it does is written to a [Ledger], in
// memory or in a file that several processes share.
//
// A message flows the same way on every transport: it is parsed and entered into
// the ledger (dispatch.go), faults may swallow or delay it (before.go), a method or
// a tool makes a result (methods.go, tools.go), faults bend the answer (answer.go),
// and a sink frames it (stdio.go, stream.go). All bytes are made by hand, since a
// library would refuse to make most of these mistakes.
//
// The package is for tests, the demo and the benchmark; it never runs in the way
// of a real call.
package fake
