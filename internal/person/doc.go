// Package person decides whether a person is behind a change.
//
// Fill in an [Asker] for this process, or a [Peer] for the other end of a control socket,
// and call Check before a change that loosens a restriction (pins, rules, approvals,
// tokens).
//
// Check wants one of two proofs: a terminal, or the script token, which a person has made
// and given to a script. It refuses a process that a coding agent started, and a server
// that usher runs: it recognises them by their environment and, on Linux, by the
// environment, name and command line of their ancestors.
//
// The package does not protect against a determined program that runs as the same user:
// such a program can edit the files that usher reads, detach itself from the agent, or
// emulate a terminal. It stops an agent that runs a command it was told of or can guess.
//
// It owns the tables of agents and the script token. Which changes loosen a restriction is
// decided by the packages that make them.
package person

import "errors"

// ErrNeeded refuses a change. Its text names no way around it.
var ErrNeeded = errors.New("this change needs a person at a terminal")

// Asker is the process that asks for a change.
type Asker struct {
	// LookupEnv reads its environment.
	LookupEnv func(string) (string, bool)
	// Terminal says that it is connected to a terminal.
	Terminal bool
	// PID is its process id, for looking at its ancestors; 0 leaves them out.
	PID int
	// Dir is usher's configuration directory, which holds the hash of the script token.
	Dir string
}

// Check returns nil when a person is behind the asker, otherwise [ErrNeeded]. In the
// environment of an agent it accepts neither proof. It examines the ancestors only for a
// terminal, which an agent can emulate; it cannot make the token.
func (a Asker) Check() error {
	if Agent(a.LookupEnv) != "" {
		return ErrNeeded
	}
	token, _ := a.LookupEnv(TokenVariable)
	if ValidToken(a.Dir, token) {
		return nil
	}
	if a.Terminal && (a.PID == 0 || ancestor(a.PID) == "") {
		return nil
	}
	return ErrNeeded
}
