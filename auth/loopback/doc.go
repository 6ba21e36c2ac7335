// Package loopback receives OAuth callbacks on this machine: it listens on a loopback
// address, reads the callback of a browser and shows a page that says how the login
// ended.
//
// A program without an engine uses [NewListener] and [Listener.Listen]. The engine of
// package auth runs one [Server] for all its logins: [Server.Start] opens the shared
// address, [Server.ListenOn] one that a configured redirect address demands, and
// [Server.CloseIfIdle] frees the ports when no login needs them.
//
// Guarantees: only a GET at a redirect address with a Host header of this machine is a
// callback; prefetches, HEAD and everything else get a page and change nothing. A page
// is fixed text: nothing from a request or from a provider appears on it, it loads
// nothing, leads nowhere and cannot be framed. Connections are limited (internal/limit),
// and a slow client cannot keep a browser waiting.
//
// The package does not own logins: what a callback means is decided by the function that
// receives it.
package loopback
