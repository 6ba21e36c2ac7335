// Package outage proves that a server that is away for a while costs little and comes
// back by itself, whatever surface calls it. It holds tests only.
//
// make test runs a short form with short windows; USHER_PROOF=1 a minute with the
// defaults.
package outage
