package cmdutil

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/process"
)

// IO is the world a command sees. Tests give their own.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	// InTTY, OutTTY and ErrTTY say which of them is a terminal: colours, symbols,
	// progress and questions are for terminals only.
	InTTY, OutTTY, ErrTTY bool
	// Width is the terminal's width in columns, 80 when it is unknown.
	Width int
	// System is the machine: environment, home, working directory.
	System config.System
	// Executable is the path of this program, re-executed around children. Empty
	// turns that off.
	Executable string
	// Hangup says that the terminal is gone, or that a served configuration is to be
	// read again. Nil never does.
	Hangup <-chan os.Signal

	held  *heldEnv // the secrets taken out of the environment; nil: they stay
	Exits bool     // the process ends with the command
	PID   int      // this process, when the command is all that it does
	Nohup bool     // it does not end with its terminal
}

// System returns the real world. It takes the secrets of usher out of the environment of
// the process, so that only commands that are given this IO find them.
func System() IO {
	in, out, errw := os.Stdin, os.Stdout, os.Stderr
	w := IO{
		In: in, Out: out, Err: errw, Width: 80,
		InTTY: isTerminal(in), OutTTY: isTerminal(out), ErrTTY: isTerminal(errw),
	}
	if cols, _, err := term.GetSize(int(out.Fd())); err == nil && cols > 0 {
		w.Width = cols
	}
	w.Executable = process.Self()
	w.held = holdSecrets()
	w.System.LookupEnv = w.held.lookup
	return w
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Env returns a variable of the environment, "" when it is not set.
func (w *IO) Env(name string) string {
	v, _ := w.lookup(name)
	return v
}

func (w *IO) lookup(name string) (string, bool) {
	if w.System.LookupEnv != nil {
		return w.System.LookupEnv(name)
	}
	return os.LookupEnv(name)
}

// Colour reports whether standard output may carry colours (NO_COLOR and a dumb
// terminal say no).
func (w *IO) Colour() bool { return w.Paints(w.OutTTY) }

// Paints is colour for a stream that is a terminal or not.
func (w *IO) Paints(tty bool) bool {
	return tty && w.Env("NO_COLOR") == "" && w.Env("TERM") != "dumb"
}

// Size is the size of the terminal now: that of standard error, where live parts are
// drawn.
func (w *IO) Size() (columns, rows int) {
	if f, ok := w.Err.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return w.Width, 24
}
