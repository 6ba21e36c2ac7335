package store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/vault/keys"
)

func newCmdKey(f *cmdutil.Factory) *cobra.Command {
	c := &cobra.Command{
		Use: "key", Short: "Manage the encryption key", GroupID: "config",
		Long: `Logins and secrets are encrypted with a key. usher creates it with the first of them
and stores it where "key" under "usher" in the configuration (or USHER_KEY) says: auto (the
operating system's keychain if it answers, else a file in the state directory),
keychain, passphrase, file:PATH or env:NAME.`,
		Example: "  usher key show\n  usher key rotate\n  usher key rotate --to passphrase",
		Args:    cmdutil.NoCommand,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCmdKeyShow(f, nil), newCmdKeyRotate(f, nil))
	return c
}

type keyShowOptions struct {
	f           *cmdutil.Factory
	json, check bool
}

func newCmdKeyShow(f *cmdutil.Factory, runF func(context.Context, *keyShowOptions) error) *cobra.Command {
	o := &keyShowOptions{f: f}
	if runF == nil {
		runF = keyShowRun
	}
	c := &cobra.Command{
		Use: "show", Short: "Show where the key is stored", Args: cmdutil.ExactArgs(0),
		Long: `Show where the key is stored. This does not need the key and never shows it; --check
verifies the key.`,
		Example: "  usher key show\n  usher key show --check --json",
		RunE:    func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	c.Flags().BoolVar(&o.check, "check", false, "verify that the key decrypts the store")
	return c
}

func keyShowRun(ctx context.Context, o *keyShowOptions) error {
	f := o.f
	h, err := f.Open(ctx)
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
		if err := f.PrintJSON(keyJSON(s, o, problem)); err != nil {
			return err
		}
		return problem
	}
	fmt.Fprintln(f.IO.Out, cmdutil.Clean(s.Statement()))
	if s.Unfinished() {
		fmt.Fprintln(f.IO.Out, "a rotation was interrupted; finish it with: usher key rotate")
	}
	for _, p := range s.Places {
		fmt.Fprintf(f.IO.Out, "  %s  %s  since %s\n", cmdutil.Clean(p.Place), p.ID, p.Created.Local().Format(time.DateTime))
	}
	if problem == nil && o.check {
		fmt.Fprintln(f.IO.Out, "it opens the store")
	}
	return problem
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

func keyJSON(s keys.Status, o *keyShowOptions, problem error) keyStatusJSON {
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

type keyRotateOptions struct {
	f  *cmdutil.Factory
	to string
}

func newCmdKeyRotate(f *cmdutil.Factory, runF func(context.Context, *keyRotateOptions) error) *cobra.Command {
	o := &keyRotateOptions{f: f}
	if runF == nil {
		runF = keyRotateRun
	}
	c := &cobra.Command{
		Use: "rotate", Short: "Create a new key and re-encrypt everything", Args: cmdutil.ExactArgs(0),
		Long: `Create a new key, re-encrypt all logins and secrets with it, and delete the old key.
Running usher processes continue. If it is interrupted, everything can still be
decrypted, and running it again completes it. --to stores the key in another place.`,
		Example: `  usher key rotate
  usher key rotate --to keychain
  usher key rotate --to file:/etc/usher/key
  NEW_KEY="$(openssl rand -base64 32)" usher key rotate --to env:NEW_KEY`,
		RunE: func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	c.Flags().StringVar(&o.to, "to", "", "`location` of the new key: keychain, passphrase, file:PATH or env:NAME")
	_ = c.RegisterFlagCompletionFunc("to", func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return cmdutil.Offer([]string{"keychain", "passphrase", "file:", "env:"}, prefix), cobra.ShellCompDirectiveNoSpace
	}) // the flag was just made
	return c
}

func keyRotateRun(ctx context.Context, o *keyRotateOptions) error {
	f, to := o.f, o.to
	to, err := keyPlace(f, to)
	if err != nil {
		return err
	}
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	before, err := h.Keys().Status(ctx)
	if err != nil {
		return err
	}
	done, err := h.Keys().Rotate(ctx, to)
	if err != nil {
		if before.Made && cmdutil.HintOf(err) == "" {
			err = cmdutil.WithHint(err, "nothing is lost: everything still opens; usher key rotate goes on from here")
		}
		return err
	}
	if done.Resumed {
		f.Note("finished a rotation that was interrupted")
	}
	f.Note("re-encrypted %s; the key is in %s", cmdutil.Count(done.Resealed, "record"), done.To)
	for _, key := range done.Unopened {
		f.Note("  %s does not open and stays as it is", key)
	}
	for _, remark := range done.Remarks {
		f.Note("  %s", remark)
	}
	if to != "" && !settingCovers(before.Setting, done.To, to) {
		f.Note("next: set \"key\": %q under \"usher\" in your configuration, or USHER_KEY=%s; until then the key is not found", to, to)
	}
	return nil
}

// settingCovers says whether the configured setting finds a key that was moved.
func settingCovers(setting, place, to string) bool {
	return setting == to || setting == place || setting == "auto" && to == "keychain"
}

// keyPlace checks --to and makes a path whole.
func keyPlace(f *cmdutil.Factory, to string) (string, error) {
	kind, rest, found := strings.Cut(to, ":")
	switch {
	case to == "", to == "keychain", to == "passphrase", found && kind == "env" && rest != "":
		return to, nil
	case found && kind == "file" && rest != "":
		if !filepath.IsAbs(rest) {
			rest = filepath.Join(f.IO.System.WithDefaults().Workdir, rest)
		}
		return "file:" + rest, nil
	}
	return "", cmdutil.Usagef("usher key rotate --to keychain\nusher key rotate --to file:PATH", "--to takes keychain, passphrase, file:PATH or env:NAME") // what was given may be the key itself
}
