// Package gateway serves MCP to clients: Streamable HTTP of the legacy and the stateless
// protocol on one URL, stdio, and the HTTP+SSE transport of 2024-11-05.
//
//	g := gateway.New(surface, &gateway.Options{Auth: authn.NewTokens(store)})
//	err := g.Serve(ctx, listener, nil) // or g.Handler() in a mux, or g.ServeStdio
//
// Guarantees: params and results stay the bytes they are. What a client opens (sessions,
// streams, suspended calls) can be used with the same credential only and ends with it.
// Everything that a client can make grow is limited; see package limit. Close returns when
// all goroutines have ended.
//
// What a client sees is surface's, and what may pass is policy's.
//
// A request over HTTP:
//
//	http_routes.go            Host and Origin (internal/guard), the endpoint,
//	  │                       authenticate.go: the identity; request_limits.go: quotas;
//	  │                       revocation.go: what ends with the client's token
//	  ├ dispatch_stateless.go one POST, no session: headers checked against the body
//	  │    └ call_stateless.go   the call; questions of a legacy server suspend it
//	  │                          (suspended_call.go, internal/suspend)
//	  └ http_legacy.go        POST and DELETE of a session, event_stream.go: GET
//	       └ dispatch_legacy.go  the call in a session (session.go, session_store.go);
//	                             questions of a stateless server go to the client
//	                             (session_questions.go, input_rounds.go)
//
// Replies, queues and replayed streams are in internal/stream. Over stdio (stdio.go) the
// same two ways are taken, without HTTP around them.
//
// A client of either protocol may use a server of either protocol. A question passes
// untouched where both sides speak the same one. A stateless server and a legacy client:
// the server's `input_required` is put to the client as requests, and the call is repeated
// with the answers. A legacy server and a stateless client: the call is suspended, the
// client gets `input_required` with a sealed state, and its retry resumes the call.
package gateway
