package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/advice"
	"github.com/usher-mcp/usher/internal/person"
	"github.com/usher-mcp/usher/policy"
)

// Exit codes. They are part of the interface: scripts branch on them.
const (
	ExitOK      = 0
	ExitError   = 1
	ExitUsage   = 2
	ExitWaiting = 10 // a person must act: a login, an approval
	ExitBlocked = 11 // denied, pinned, out of budget
	exitStopped = 130
)

// usageError is a mistake in how the command was called.
type usageError struct{ msg, hint string }

func (e *usageError) Error() string { return e.msg }

// Hint is the next step.
func (e *usageError) Hint() string { return e.hint }

// Usagef makes the error of a command that was called in a wrong way.
func Usagef(hint, format string, args ...any) error {
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

// WithHint adds the next step to an error.
func WithHint(err error, format string, args ...any) error {
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// SilentError ends the command with a code after everything has been said.
type SilentError struct{ Code int }

func (e *SilentError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// ExitCode maps errors to exit codes, in one place.
func ExitCode(err error) int {
	var done *SilentError
	var usage *usageError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &done):
		return done.Code
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, host.ErrNeedsLogin), errors.Is(err, host.ErrHeldBack), errors.Is(err, ErrNoTerminal), errors.Is(err, person.ErrNeeded):
		return ExitWaiting
	case errors.Is(err, policy.ErrDenied), errors.Is(err, policy.ErrSchemaChanged), errors.Is(err, policy.ErrBudget):
		return ExitBlocked
	case errors.Is(err, context.Canceled):
		return exitStopped
	}
	return ExitError
}

// Report writes an error: what happened on one line, the next step on the next.
func (f *Factory) Report(err error) {
	var done *SilentError
	if err == nil || errors.As(err, &done) {
		return
	}
	if reportPlaces(f, err) {
		return
	}
	msg, hint := f.Explain(err)
	fmt.Fprintln(f.IO.Err, "usher: "+Clean(strings.TrimPrefix(msg, "usher: ")))
	if hint != "" {
		for _, line := range strings.Split(hint, "\n") {
			fmt.Fprintln(f.IO.Err, "  "+Clean(line))
		}
	}
}

// reportPlaces shows mistakes in files with the lines they stand in, and reports
// whether there were any.
func reportPlaces(f *Factory, err error) bool {
	found := false
	for _, e := range Flatten(err) {
		var place *config.Error
		if errors.As(f.ShortError(e), &place) {
			fmt.Fprintln(f.IO.Err, Clean(place.Detail()))
			found = true
		}
	}
	return found
}

// HintOf finds the outermost next step.
func HintOf(err error) string { return advice.Next(err) }
