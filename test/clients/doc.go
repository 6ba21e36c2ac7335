// Package clients drives usher as agents do: with the clients that people have.
//
// It owns the conversations of the official TypeScript clients (both generations,
// in every revision they speak), of the official Go client and of the MCP
// Inspector's command line with a real "usher serve", over stdio and HTTP, before
// servers of both eras; and what the one tool of the meta surface costs in tokens.
// It refuses to own single messages: those are tested in gateway.
//
// The flow: the test binary is usher itself when it is called so; a Node script
// speaks through a client and tells what it saw, a line of JSON for each
// conversation.
package clients
