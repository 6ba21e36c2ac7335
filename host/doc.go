// Package host supervises connections to MCP servers: it dials, restarts, retries
// where that is safe, and says what state each server is in. Nobody else dials,
// spawns or retries.
//
// It does not decide who may call what and keeps no results (package policy does),
// knows nothing of OAuth (it asks an [Authorizer]) and never looks into arguments
// or results.
//
// A [Host] has registrations, one per server name. Each [Key] in use, that is
// (principal, server, account, lane), has a unit: one supervised connection with a
// breaker and a restart budget of its own. The way of a request:
//
//	Host.Do ─ finds the unit (host.go)
//	  └ unit.run ─ one attempt, at most one more where that is safe (run.go)
//	       ├ admit     ejected and open circuits fail at once (internal/supervise)
//	       ├ acquire   the connection, or one shared dial for all who wait (connect.go)
//	       ├ the call  with a deadline that pauses while a person is asked (internal/deadline)
//	       └ record    what the outcome says about the server (classify.go)
//
// No lock is held across a dial, a handshake, a login or a call. A unit's state
// carries an epoch that Reload and Stop advance; what began in an older epoch
// changes nothing.
package host
