package cli

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/person"
	"github.com/usher-mcp/usher/process"
)

// tree lists the commands below root by their paths, without the name of the program.
func tree(root *cobra.Command) map[string]*cobra.Command {
	out := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() {
			out[commandName(c)] = c
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return out
}

// TestEveryCommandIsClassified wants a row for every command: the author of one has to
// say whether it loosens a guard.
func TestEveryCommandIsClassified(t *testing.T) {
	root := newRoot(&cmdutil.Factory{IO: cmdutil.IO{Out: io.Discard, Err: io.Discard}})
	root.InitDefaultHelpCmd()
	commands, rows := tree(root), commandEffects()
	for name := range commands {
		if _, ok := rows[name]; !ok {
			t.Errorf("usher %s has no row in commandEffects: say whether it loosens a guard, tightens one or does neither", name)
		}
	}
	for name, row := range rows {
		c, ok := commands[name]
		if !ok {
			t.Errorf("commandEffects has a row for usher %s, which does not exist", name)
			continue
		}
		for _, flag := range slices.Concat(row.with, row.except) {
			if c.Flags().Lookup(flag) == nil {
				t.Errorf("the row of usher %s names --%s, which it does not have", name, flag)
			}
		}
		if row.asks && c.Flags().Lookup("yes") == nil {
			t.Errorf("the row of usher %s says that it asks, but it has no --yes", name)
		}
		needs := row.effect == loosens || len(row.with) > 0
		if strings.Contains(c.Long, "needs a person") != needs {
			t.Errorf("the help of usher %s says that it needs a person: %v, want %v", name, !needs, needs)
		}
	}
}

// The commands that finding 32 names stay refused whatever becomes of the table.
func TestLooseningCommands(t *testing.T) {
	for _, line := range []string{
		"pins accept x", "pins accept --all", "allow x", "allow --remove x", "deny --remove x", "approve x --yes", "secret set x",
		"token mint", "token script", "key rotate", "import --yes", "init --yes", "init --undo --yes", "link --all --yes",
		"unlink --all --yes", "add x https://example.com", "add x --replace https://example.com", "export cursor --secrets",
		"store migrate --to x", "store repair", "console", "console --open", "console --json", "pins lock",
	} {
		w := newWorld(t)
		delete(w.env, person.TokenVariable)
		if code, out, errs := w.run(strings.Fields(line)...); code != cmdutil.ExitWaiting || out != "" || !strings.Contains(errs, person.ErrNeeded.Error()) {
			t.Errorf("usher %s: code %d, %s%s", line, code, out, errs)
		}
		w.env["CURSOR_AGENT"], w.in = "1", strings.NewReader("y\ny\ny\n") // an agent with a terminal
		w.env[person.TokenVariable] = w.token
		if code, out, errs := w.run(strings.Fields(line)...); code != cmdutil.ExitWaiting || out != "" || !strings.Contains(errs, person.ErrNeeded.Error()) {
			t.Errorf("an agent's usher %s: code %d, %s%s", line, code, out, errs)
		}
	}
}

// A person who types is asked nothing that was not asked before.
func TestPersonAtTerminal(t *testing.T) {
	w := newWorld(t)
	delete(w.env, person.TokenVariable)
	w.in, w.tty, w.errTTY = strings.NewReader(""), true, true
	for _, line := range []string{"add x https://example.com/mcp", "allow x", "allow --remove x", "deny x", "deny --remove x", "token mint"} {
		if code, _, errs := w.run(strings.Fields(line)...); code != 0 || strings.Contains(errs, "[y/N]") {
			t.Errorf("usher %s: code %d, %s", line, code, errs)
		}
	}
	// A value that is piped in leaves standard output and error to the terminal.
	w.in = nil
	if !(&cmdutil.Factory{IO: cmdutil.IO{OutTTY: true, ErrTTY: true}}).Terminal() {
		t.Error("a pipe into standard input hides the person")
	}
	for _, io := range []cmdutil.IO{{}, {InTTY: true}, {InTTY: true, OutTTY: true}, {ErrTTY: true}} {
		if (&cmdutil.Factory{IO: io}).Terminal() {
			t.Errorf("%+v is taken for a terminal", io)
		}
	}
}

// What usher starts is marked, and recognised.
func TestChildIsRecognised(t *testing.T) {
	env := process.SafeEnv(os.Environ(), map[string]string{person.ChildVariable: ""})
	got := person.Agent(func(name string) (string, bool) {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value, true
			}
		}
		return "", false
	})
	if got == "" {
		t.Errorf("a child with %q is not recognised", env)
	}
}
