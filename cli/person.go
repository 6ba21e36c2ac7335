package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

// commandName is the path of a command without the name of the program: "pins accept".
func commandName(c *cobra.Command) string {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	return name
}

// needsPerson reports whether a command, as it was called, loosens a guard.
func needsPerson(f *cmdutil.Factory, c *cobra.Command) bool {
	given := func(flags ...string) bool {
		return slices.ContainsFunc(flags, func(name string) bool { return c.Flags().Changed(name) })
	}
	row := commandEffects()[commandName(c)]
	switch {
	case row.effect != loosens && !given(row.with...):
		return false
	case given(row.except...):
		return false
	case row.asks && !f.IO.InTTY && !given("yes"):
		return false // it shows what it would do, and ends
	}
	return true
}

// requirePerson refuses a command that loosens a guard unless a person stands behind
// it.
func requirePerson(f *cmdutil.Factory, c *cobra.Command, _ []string) error {
	if !needsPerson(f, c) {
		return nil
	}
	if err := f.MayLoosen(); err != nil {
		return fmt.Errorf("%s: %w", commandName(c), err)
	}
	return nil
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
