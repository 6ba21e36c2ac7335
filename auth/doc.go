// Package auth is the OAuth client: it gets a person, or a machine, logged in to
// an MCP server and keeps it so.
//
// It owns discovery (whom to ask), registration (as whom), the flows (browser,
// device code, paste-back, client credentials, workload identity, enterprise
// managed), grants and their refresh, step-up, logout, and the loopback listener.
// It does not own MCP connections (a caller puts what [Engine.Authorize] gives on
// its requests and tells [Engine.Refused] of refusals), nor where grants are kept
// (vault), nor what a person sees (cli, console). It never opens a browser by
// itself: only a function that was handed an [Interactive] can, and only an
// explicit command of a person makes one.
//
// A login flows like this: [Engine.Begin] discovers (discover.go), registers
// (register.go), writes down a pending login (pending.go) and returns the address
// of the consent page. Whatever gets hold of the answer, the listener
// (listener.go), a paste (paste.go) or another process that shares the store, hands
// it to [Engine.Complete], which checks it, claims the pending login, trades the
// code for tokens (token.go) and stores the grant before anybody uses it.
//
// A request flows like this: [Engine.Authorize] reads the grant, renews it under a
// lease when it is due (refresh.go), and sets the header. A 401 or 403 goes to
// [Engine.Refused] (refused.go), which renews once or says that a person is needed.
//
// Tokens, codes, verifiers and client secrets are vault.Secret everywhere; no error
// or log line of this package holds one, nor any body an authorization server sent.
package auth
