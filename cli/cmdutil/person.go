package cmdutil

import (
	"fmt"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/person"
)

// MayLoosen returns nil when a person stands behind this process.
func (f *Factory) MayLoosen() error {
	dirs, err := config.FindDirs(f.IO.System)
	if err != nil {
		return err
	}
	return person.Asker{LookupEnv: f.IO.lookup, Terminal: f.Terminal(), PID: f.IO.PID, Dir: dirs.Config}.Check()
}

// Terminal reports whether a person sees what is said and can type: standard error is
// a terminal, and one of the others, since a value may be piped in or out.
func (f *Factory) Terminal() bool { return f.IO.ErrTTY && (f.IO.InTTY || f.IO.OutTTY) }

// Agent names the coding agent that runs this command; empty when none is recognised.
func (f *Factory) Agent() string { return person.Agent(f.IO.lookup) }

// ByPerson is what an agent reads in place of advice that would loosen a guard.
const ByPerson = "a person can change that"

// Remedy is advice for a person. An agent is told that there is some, and not what.
func Remedy(f *Factory, advice string) string {
	if f.Agent() != "" {
		return ByPerson
	}
	return advice
}

// AgreeHint is the advice to run a command again with --yes, which helps nobody who
// would be refused.
func AgreeHint(f *Factory, format string, args ...any) string {
	if f.Agent() != "" {
		return ByPerson
	}
	if f.MayLoosen() != nil {
		return "run it in a terminal"
	}
	return fmt.Sprintf(format, args...)
}
