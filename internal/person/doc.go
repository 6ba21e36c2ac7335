// Package person decides whether a person stands behind a change.
//
// What guards an agent (pins, rules, approvals, tokens) must not be undone by the
// agent itself. So a change that loosens something needs one of two proofs: a
// terminal that a person types at, or the script token, which a person has made and
// given to a script. A process that a coding agent started, or a server that usher
// supervises, has neither: it is recognised by its environment and by that of its
// ancestors.
//
// The package does not protect against a program that runs as the same user and is
// determined: such a program can edit the files that usher reads. It keeps the guard
// from being undone by one command that the agent was told of or can guess.
//
// It owns the table of agents and the script token. Which changes loosen something is
// the business of cli and of the root package.
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

// Check returns nil when a person stands behind the asker, otherwise [ErrNeeded]. In
// the environment of an agent nothing counts. The ancestors matter only to a terminal,
// which an agent can make; it cannot make the token.
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
