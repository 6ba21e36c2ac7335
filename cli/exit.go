package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/person"
	"github.com/usher-mcp/usher/policy"
)

// Exit codes. They are part of the interface: scripts branch on them.
const (
	exitOK      = 0
	exitError   = 1
	exitUsage   = 2
	exitWaiting = 10 // a person must act: a login, an approval
	exitBlocked = 11 // denied, pinned, out of budget
	exitStopped = 130
)

// usageError is a mistake in how the command was called.
type usageError struct{ msg, hint string }

func (e *usageError) Error() string { return e.msg }

// Hint is the next step.
func (e *usageError) Hint() string { return e.hint }

func usagef(hint, format string, args ...any) error {
	return &usageError{msg: fmt.Sprintf(format, args...), hint: hint}
}

// hinted is an error with the next step.
type hinted struct {
	error
	hint string
}

// Hint is the next step.
func (e *hinted) Hint() string { return e.hint }

func (e *hinted) Unwrap() error { return e.error }

func withHint(err error, format string, args ...any) error {
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// silent ends the command with a code after everything has been said.
type silent struct{ code int }

func (e *silent) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitCode maps errors to exit codes, in one place.
func exitCode(err error) int {
	var done *silent
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &done):
		return done.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, host.ErrNeedsLogin), errors.Is(err, host.ErrHeldBack), errors.Is(err, errNoTerminal), errors.Is(err, person.ErrNeeded):
		return exitWaiting
	case errors.Is(err, policy.ErrDenied), errors.Is(err, policy.ErrSchemaChanged), errors.Is(err, policy.ErrBudget):
		return exitBlocked
	case errors.Is(err, context.Canceled):
		return exitStopped
	}
	return exitError
}

// report writes an error: what happened on one line, the next step on the next.
func (a *factory) report(err error) {
	var done *silent
	if err == nil || errors.As(err, &done) {
		return
	}
	if a.reportPlaces(err) {
		return
	}
	msg, hint := a.explain(err)
	fmt.Fprintln(a.io.Err, "usher: "+clean(strings.TrimPrefix(msg, "usher: ")))
	if hint != "" {
		for _, line := range strings.Split(hint, "\n") {
			fmt.Fprintln(a.io.Err, "  "+clean(line))
		}
	}
}

// reportPlaces shows mistakes in files with the lines they stand in, and reports
// whether there were any.
func (a *factory) reportPlaces(err error) bool {
	found := false
	for _, e := range flatten(err) {
		var place *config.Error
		if errors.As(a.shortError(e), &place) {
			fmt.Fprintln(a.io.Err, clean(place.Detail()))
			found = true
		}
	}
	return found
}

// hintOf finds the outermost next step.
func hintOf(err error) string { return app.Advice(err) }
