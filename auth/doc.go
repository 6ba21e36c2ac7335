// Package auth is the login engine: it logs accounts in to MCP servers and keeps them
// logged in.
//
// Make one [Engine] per program with [New]. Log in with [Engine.Browser], or with
// [Engine.Begin] and [Engine.Wait] where the program shows the consent page itself;
// [Engine.BeginDevice] and [Engine.PollDevice] use a code on another screen,
// [Engine.Machine] needs no user. [Engine.Complete] and [Engine.Paste] take what came
// back from the page. For each request call [Engine.Authorize], and [Engine.Refused] when
// the server answers 401 or 403; put [Engine.Transport] around the HTTP transport, so
// that a refusal is attributed to the token it met.
//
// Guarantees:
//
//   - A refresh token is sent by one process at a time, under a lease, and its successor
//     is stored before it is used (package grants).
//   - A code is exchanged once, by whichever process that shares the store gets the
//     callback first, and only for a pending login of the same principal.
//   - Tokens go only to the resource they were issued for.
//   - The package never opens a browser by itself: only a function that was given an
//     [Interactive] can, and only an explicit command of a user makes one.
//   - Tokens, codes, verifiers and client secrets are vault.Secret; no error or log line
//     holds one, nor any body that an authorization server sent.
//
// The engine delegates to one type per concern: registrar, preparer, pendingLogins,
// completer, deviceLogins and callbackListener for getting a grant, and grants.Manager
// for using and refreshing it. They share a grants.Env.
//
// Grants are in auth/grants, OAuth requests in auth/oauth, the callback listener in
// auth/loopback, many logins at once in auth/bulk, callback forwarding in auth/forward.
// The package does not own MCP connections (upstream), where grants are kept (vault), or
// what a user sees (cli, console).
package auth
