// Package usher is the front door for programs that embed usher: it hosts MCP servers,
// logs in to them, and calls their tools under supervision and policy.
//
//	h, err := usher.Open(ctx, usher.Ephemeral()) // no files, nothing written to disk
//	defer h.Close()
//	err = h.Spawn(ctx, config.Server{Name: "files", Command: "my-server"}, nil)
//	raw, err := h.Call(ctx, "files", "read", []byte(`{"path": "a.txt"}`), nil)
//	result, err := usher.ParseResult(raw)
//
// Open with nil options uses the configuration and the store of the usher command.
// docs/embedding.md walks through progress, elicitation, logins, pins, events and the
// gateway; examples/host is a program that uses all of them.
//
// Guarantees: all methods may be used concurrently. Nothing is started before it is
// used. Every call passes the policy. Arguments and results stay the bytes they are. A
// call that may have run is not repeated. [ErrorInfo] turns an error into data; errors
// contain no command lines. [Host.Close] ends every connection, child process and
// goroutine.
//
// The module is at version 0: names may change between minor versions, and CHANGELOG.md
// lists each change. The wiring behind this package is internal/app.
package usher
