package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/person"
)

// commandName is the path of a command without the name of the program: "pins accept".
func commandName(c *cobra.Command) string {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	return name
}

// needsPerson reports whether a command, as it was called, loosens a guard.
func (a *factory) needsPerson(c *cobra.Command) bool {
	given := func(flags ...string) bool {
		return slices.ContainsFunc(flags, func(name string) bool { return c.Flags().Changed(name) })
	}
	row := commandEffects()[commandName(c)]
	switch {
	case row.effect != loosens && !given(row.with...):
		return false
	case given(row.except...):
		return false
	case row.asks && !a.io.InTTY && !given("yes"):
		return false // it shows what it would do, and ends
	}
	return true
}

// requirePerson refuses a command that loosens a guard unless a person stands behind
// it.
func (a *factory) requirePerson(c *cobra.Command, _ []string) error {
	if !a.needsPerson(c) {
		return nil
	}
	if err := a.mayLoosen(); err != nil {
		return fmt.Errorf("%s: %w", commandName(c), err)
	}
	return nil
}

// mayLoosen returns nil when a person stands behind this process.
func (a *factory) mayLoosen() error {
	dirs, err := config.FindDirs(a.io.System)
	if err != nil {
		return err
	}
	return person.Asker{LookupEnv: a.io.lookup, Terminal: a.terminal(), PID: a.io.pid, Dir: dirs.Config}.Check()
}

// terminal reports whether a person sees what is said and can type: standard error is
// a terminal, and one of the others, since a value may be piped in or out.
func (a *factory) terminal() bool { return a.io.ErrTTY && (a.io.InTTY || a.io.OutTTY) }

// agent names the coding agent that runs this command; empty when none is recognised.
func (a *factory) agent() string { return person.Agent(a.io.lookup) }

// byPerson is what an agent reads in place of advice that would loosen a guard.
const byPerson = "a person can change that"

// remedy is advice for a person. An agent is told that there is some, and not what.
func (a *factory) remedy(advice string) string {
	if a.agent() != "" {
		return byPerson
	}
	return advice
}

// agreeHint is the advice to run a command again with --yes, which helps nobody who
// would be refused.
func (a *factory) agreeHint(format string, args ...any) string {
	if a.agent() != "" {
		return byPerson
	}
	if a.mayLoosen() != nil {
		return "run it in a terminal"
	}
	return fmt.Sprintf(format, args...)
}

// explainPerson adds to the help of every command below root that it needs a person.
func explainPerson(root *cobra.Command) {
	rows := commandEffects()
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		row := rows[commandName(c)]
		var when string
		switch {
		case row.effect == loosens:
			when = "This"
		case len(row.with) > 0:
			when = "With --" + strings.Join(row.with, " or --") + " it"
		}
		if when != "" {
			about := c.Long
			if about == "" {
				about = c.Short + "."
			}
			c.Long = about + "\n\n" + when + " needs a person at a terminal, or a script token:\nusher token script --help"
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
}
