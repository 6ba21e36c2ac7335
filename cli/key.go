package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/vault/keys"
)

func newCmdKey(a *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "key", Short: "The key that seals logins and secrets", GroupID: "config",
		Long: `Logins and secrets are sealed with a key. It is made with the first of them and
kept where "key" under "usher" in the configuration (or USHER_KEY) says: auto (the
operating system's keychain if it answers, else a file in the state directory),
keychain, passphrase, file:PATH or env:NAME.`,
		Example: "  usher key show\n  usher key rotate\n  usher key rotate --to passphrase",
		Args:    noCommand,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCmdKeyShow(a), newCmdKeyRotate(a))
	return c
}

type keyShowOptions struct{ json, check bool }

func newCmdKeyShow(a *factory) *cobra.Command {
	var o keyShowOptions
	c := &cobra.Command{
		Use: "show", Short: "Say where the key is kept", Args: exactly(0),
		Long: `Say where the key is kept. The key itself is not needed and never shown; --check
looks whether it is there and is the right one.`,
		Example: "  usher key show\n  usher key show --check --json",
		RunE:    func(c *cobra.Command, _ []string) error { return a.keyShow(c.Context(), o) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	c.Flags().BoolVar(&o.check, "check", false, "look whether the key opens the store")
	return c
}

func (a *factory) keyShow(ctx context.Context, o keyShowOptions) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	s, err := h.Keys().Status(ctx)
	if err != nil {
		return err
	}
	var problem error
	if o.check {
		problem = h.Keys().Unlock(ctx)
	}
	if o.json {
		if err := a.printJSON(keyJSON(s, o, problem)); err != nil {
			return err
		}
		return problem
	}
	fmt.Fprintln(a.io.Out, clean(s.Statement()))
	if s.Unfinished() {
		fmt.Fprintln(a.io.Out, "a rotation was interrupted; finish it with: usher key rotate")
	}
	for _, p := range s.Places {
		fmt.Fprintf(a.io.Out, "  %s  %s  since %s\n", clean(p.Place), p.ID, p.Created.Local().Format(time.DateTime))
	}
	if problem == nil && o.check {
		fmt.Fprintln(a.io.Out, "it opens the store")
	}
	return problem
}

// examineKey says where the key is and whether it opens the store. Nobody is asked
// for a passphrase.
func (a *factory) examineKey(ctx context.Context, d *diagnosis) {
	h, err := a.open(ctx)
	if err != nil {
		return // told already
	}
	s, err := h.Keys().Status(ctx)
	if err == nil && s.Setting != "passphrase" {
		err = h.Keys().Unlock(ctx)
	}
	switch {
	case err != nil:
		d.add(checkProblem, "key", hintOf(err), "%v", err)
	case s.Unfinished():
		d.add(checkProblem, "key", "usher key rotate", "a rotation was interrupted; %s", s.Statement())
	case !s.Made:
		d.add(checkNote, "key", "", "%s", s.Statement())
	default:
		d.add(checkOK, "key", "", "%s", s.Statement())
	}
}

type keyStatusJSON struct {
	Setting    string         `json:"setting"`
	Made       bool           `json:"made"`
	Places     []keyPlaceJSON `json:"places"`
	Created    time.Time      `json:"dataKeyCreated,omitzero"`
	DataKeys   int            `json:"dataKeys"`
	Unfinished bool           `json:"rotationUnfinished"`
	Opens      *bool          `json:"opens,omitempty"`
	Problem    string         `json:"problem,omitempty"`
}

type keyPlaceJSON struct {
	Place   string    `json:"place"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
}

func keyJSON(s keys.Status, o keyShowOptions, problem error) keyStatusJSON {
	j := keyStatusJSON{
		Setting: s.Setting, Made: s.Made, Places: []keyPlaceJSON{}, Created: s.Created, DataKeys: s.DataKeys, Unfinished: s.Unfinished(),
	}
	for _, p := range s.Places {
		j.Places = append(j.Places, keyPlaceJSON{p.Place, p.ID, p.Created})
	}
	if o.check {
		opens := problem == nil
		j.Opens = &opens
	}
	if problem != nil {
		j.Problem = problem.Error()
	}
	return j
}

func newCmdKeyRotate(a *factory) *cobra.Command {
	var to string
	c := &cobra.Command{
		Use: "rotate", Short: "Make a new key and seal everything anew", Args: exactly(0),
		Long: `Make a new key, seal all logins and secrets with it, and throw the old one away.
Running ushers go on. If it is interrupted everything still opens, and running it
again finishes it. --to moves the key to another place.`,
		Example: `  usher key rotate
  usher key rotate --to keychain
  usher key rotate --to file:/etc/usher/key
  NEW_KEY="$(openssl rand -base64 32)" usher key rotate --to env:NEW_KEY`,
		RunE: func(c *cobra.Command, _ []string) error { return a.keyRotate(c.Context(), to) },
	}
	c.Flags().StringVar(&to, "to", "", "keep the new key in `keychain, passphrase, file:PATH or env:NAME`")
	_ = c.RegisterFlagCompletionFunc("to", func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offer([]string{"keychain", "passphrase", "file:", "env:"}, prefix), cobra.ShellCompDirectiveNoSpace
	}) // the flag was just made
	return c
}

func (a *factory) keyRotate(ctx context.Context, to string) error {
	to, err := a.keyPlace(to)
	if err != nil {
		return err
	}
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	before, err := h.Keys().Status(ctx)
	if err != nil {
		return err
	}
	done, err := h.Keys().Rotate(ctx, to)
	if err != nil {
		if before.Made && hintOf(err) == "" {
			err = withHint(err, "nothing is lost: everything still opens; usher key rotate goes on from here")
		}
		return err
	}
	if done.Resumed {
		a.note("finished a rotation that was interrupted")
	}
	a.note("sealed %s anew; the key is kept in %s", count(done.Resealed, "record"), done.To)
	for _, key := range done.Unopened {
		a.note("  %s does not open and stays as it is", key)
	}
	for _, remark := range done.Remarks {
		a.note("  %s", remark)
	}
	if to != "" && !settingCovers(before.Setting, done.To, to) {
		a.note("next: set \"key\": %q under \"usher\" in your configuration, or USHER_KEY=%s; until then the key is not found", to, to)
	}
	return nil
}

// settingCovers says whether the configured setting finds a key that was moved.
func settingCovers(setting, place, to string) bool {
	return setting == to || setting == place || setting == "auto" && to == "keychain"
}

// keyPlace checks --to and makes a path whole.
func (a *factory) keyPlace(to string) (string, error) {
	kind, rest, found := strings.Cut(to, ":")
	switch {
	case to == "", to == "keychain", to == "passphrase", found && kind == "env" && rest != "":
		return to, nil
	case found && kind == "file" && rest != "":
		if !filepath.IsAbs(rest) {
			rest = filepath.Join(a.io.System.WithDefaults().Workdir, rest)
		}
		return "file:" + rest, nil
	}
	return "", usagef("usher key rotate --to keychain\nusher key rotate --to file:PATH", "--to takes keychain, passphrase, file:PATH or env:NAME") // what was given may be the key itself
}
