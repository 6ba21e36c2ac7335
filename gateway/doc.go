// Package gateway is MCP towards agents: Streamable HTTP of both eras on one URL,
// stdio, and the old HTTP+SSE; the bridge between the eras; and who may come in.
//
// It owns requests as they arrive, sessions of the older era, streams, limits and
// the codes and statuses that the specification wants. It refuses to own what an
// agent sees, which is surface's, and what may pass, which is policy's. Params and
// results stay the bytes they are.
//
// The way of a request over HTTP:
//
//	Handler ─ guard.go     Host, Origin: is this meant for us?
//	  └ route.go           which view; identity.go: who asks; limits.go: how much at once;
//	      │                credentials.go: what ends when the client's token does
//	      ├ modern.go      one POST, no session: headers checked against the body (mirror.go)
//	      │    └ run.go    the call; questions of an older server park it (park.go)
//	      └ legacy.go      POST, GET and DELETE of a session (session.go)
//	           └ serve.go  the call; questions of a newer server go to the agent (ask.go, rounds.go)
//
// Over stdio (stdio.go) the same two ways are taken, without HTTP around them.
//
// The bridge: an agent of either era may stand before a server of either era.
// A question passes untouched where both sides speak the same one. A newer server
// before an older agent: its `input_required` is put to the agent as requests, and
// the call is repeated. An older server before a newer agent: its request is
// answered by parking the call and returning `input_required` with a sealed state;
// the retry wakes it up.
package gateway
