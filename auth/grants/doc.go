// Package grants keeps accounts logged in: it stores grants, puts their tokens on
// requests, and refreshes them.
//
// A program uses it through package auth, whose Engine makes the [Manager]. For each
// request call [Manager.Authorize], and [Manager.Refused] when the server answers 401
// or 403; put [Manager.Transport] around the HTTP transport, so that a refusal is
// attributed to the token it met.
//
// Guarantees:
//
//   - A refresh token is sent by one process at a time, under a lease, and its successor
//     is stored before it is used (refresh.go, sending.go). Simulations and tests that
//     suspend processes prove it.
//   - Tokens go only to the resource they were issued for.
//   - A grant ends only when its authorization server has confirmed that it did.
//   - Tokens and client secrets are vault.Secret; no error or log line holds one.
//
// The manager delegates to one type per concern, which share an [Env]: [Store]
// (grant.go, versions.go), refresher (refresh.go, authorize.go), failureLog, sendLog,
// [StepUps] and refusals. How an account gets its first grant is the business of
// package auth; [Hooks] are the two places where this package needs it.
package grants
