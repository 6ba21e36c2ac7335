// Package supervise holds the parts of supervision that know nothing of connections: a
// circuit [Breaker], a [Restarts] budget, the [Places] for child processes, start
// [Slots], and limits for announcements and log lines.
//
// All of them may be used concurrently, run no goroutine of their own and do no I/O.
// What their results mean for a connection is decided by host.
package supervise
