package process

import "fmt"

// ExitError says how a child ended when it did not end with code 0.
type ExitError struct {
	// Code is the exit code, -1 when a signal ended the child.
	Code int
	// Signal is the name of that signal, such as "SIGSEGV", or empty.
	Signal string
}

func (e *ExitError) Error() string {
	if e.Signal != "" {
		return "killed by " + e.Signal
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}
