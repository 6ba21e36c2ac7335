// Package gate proves that the gate is the only way to a server: every method on
// every surface with every kind of caller, against servers full of canaries, and a
// long random walk against a model of who may see what. It holds tests only.
//
// make test runs short forms; USHER_PROOF=1 the long ones.
package gate
