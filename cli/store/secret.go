package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/template"
	"github.com/usher-mcp/usher/vault"
)

func newCmdSecret(f *cmdutil.Factory) *cobra.Command {
	c := &cobra.Command{
		Use: "secret", Short: "Manage stored secrets", GroupID: "config",
		Long: `Store tokens and passwords in usher's encrypted store and reference them as
${secret:NAME}, in any string of a server's definition. Answers to ${input:ID} are
stored here too. A value is never an argument, where a process list would show it, and
is never printed.`,
		Example: `  usher secret set github-token
  pass show github | usher secret set github-token -
  usher secret list
  usher secret rm github-token`,
		Args: cmdutil.NoCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCmdSecretSet(f, nil), newCmdSecretList(f, nil), newCmdSecretRm(f, nil))
	return c
}

type secretSetOptions struct {
	f     *cmdutil.Factory
	name  string
	piped bool
}

func newCmdSecretSet(f *cmdutil.Factory, runF func(context.Context, *secretSetOptions) error) *cobra.Command {
	o := &secretSetOptions{f: f}
	if runF == nil {
		runF = secretSetRun
	}
	return &cobra.Command{
		Use: "set NAME [-]", Short: "Store a value, read from the terminal or stdin", Args: cmdutil.RangeArgs(1, 2),
		Long: `Store a value under a name. On a terminal usher prompts for it and does not echo it;
otherwise, and with -, it reads stdin, without the line break at its end.`,
		Example: "  usher secret set github-token\n  printf %s \"$TOKEN\" | usher secret set github-token -",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 && args[1] != "-" {
				return cmdutil.Usagef("usher secret set "+args[0], "a value is not given as an argument, where others could see it")
			}
			o.name, o.piped = args[0], len(args) == 2
			return runF(c.Context(), o)
		},
		ValidArgsFunction: completeSecrets(f, 1),
	}
}

type secretListOptions struct {
	f    *cmdutil.Factory
	json bool
}

func newCmdSecretList(f *cmdutil.Factory, runF func(context.Context, *secretListOptions) error) *cobra.Command {
	o := &secretListOptions{f: f}
	if runF == nil {
		runF = secretListRun
	}
	c := &cobra.Command{
		Use: "list", Short: "Show names, fingerprints and dates", Args: cmdutil.ExactArgs(0),
		Example: "  usher secret list\n  usher secret list --json",
		RunE:    func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

type secretRmOptions struct {
	f     *cmdutil.Factory
	names []string
}

func newCmdSecretRm(f *cmdutil.Factory, runF func(context.Context, *secretRmOptions) error) *cobra.Command {
	o := &secretRmOptions{f: f}
	if runF == nil {
		runF = secretRmRun
	}
	return &cobra.Command{
		Use: "rm NAME…", Aliases: []string{"remove"}, Short: "Delete values", Args: cmdutil.RangeArgs(1, -1),
		Example: "  usher secret rm github-token",
		RunE: func(c *cobra.Command, args []string) error {
			o.names = args
			return runF(c.Context(), o)
		},
		ValidArgsFunction: completeSecrets(f, -1),
	}
}

// maxSecret bounds what is read for a secret.
const maxSecret = 1 << 20

func secretSetRun(ctx context.Context, o *secretSetOptions) error {
	f, name, piped := o.f, o.name, o.piped
	if err := secretName(name); err != nil {
		return err
	}
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	var value string
	if f.IO.InTTY && !piped {
		value, err = cmdutil.AskHidden(ctx, f, "value of "+name)
	} else {
		value, err = readValue(f.IO.In)
	}
	if err != nil {
		return err
	}
	if value == "" {
		return cmdutil.WithHint(fmt.Errorf("the value of %s is empty; nothing was saved", name), "printf %%s \"$VALUE\" | usher secret set %s -", name)
	}
	secret := vault.NewSecret(value)
	if err := h.Secrets().Set(ctx, name, secret); err != nil {
		return err
	}
	f.Note("saved %s as %s; reference it as ${secret:%s}", secret, name, name)
	return nil
}

// readValue reads all there is, but for a line break at the end.
func readValue(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("read the value from standard input: %w", err)
	}
	if len(text) > maxSecret {
		return "", fmt.Errorf("the value on standard input is longer than %d bytes", maxSecret)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// secretName accepts what a placeholder can name.
func secretName(name string) error {
	if _, err := template.Parse("${secret:" + name + "}"); err != nil || strings.ContainsAny(name, "${}") {
		return cmdutil.Usagef("usher secret set my-token", "%s cannot name a secret: use up to 128 letters, digits and . _ - / @", config.Visible(name))
	}
	return nil
}

func secretListRun(ctx context.Context, o *secretListOptions) error {
	f, asJSON := o.f, o.json
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	list, err := h.Secrets().List(ctx)
	if err != nil && !errors.Is(err, vault.ErrCorrupt) {
		return err
	}
	if err != nil {
		f.Note("usher: %v", err)
	}
	if asJSON {
		return f.PrintJSON(map[string]any{"secrets": secretsJSON(list)})
	}
	if len(list) == 0 {
		f.Note("no secrets are stored; next: usher secret set NAME")
		return nil
	}
	t := cmdutil.Table{Head: []string{"NAME", "FINGERPRINT", "CHANGED"}}
	for _, s := range list {
		print := s.Fingerprint
		if s.Problem != nil {
			print = "unreadable"
		}
		t.Add(cmdutil.Clean(s.Name), print, s.Updated.Local().Format(time.DateTime))
	}
	t.Write(f.IO.Out, 0)
	for _, s := range list {
		if s.Problem != nil {
			return s.Problem // the first says what to do; the others are alike
		}
	}
	return nil
}

type secretJSON struct {
	Name        string    `json:"name"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	Updated     time.Time `json:"updated"`
	Problem     string    `json:"problem,omitempty"`
}

func secretsJSON(list []vault.SecretInfo) []secretJSON {
	out := []secretJSON{}
	for _, s := range list {
		j := secretJSON{Name: s.Name, Fingerprint: s.Fingerprint, Updated: s.Updated}
		if s.Problem != nil {
			j.Problem = s.Problem.Error()
		}
		out = append(out, j)
	}
	return out
}

func secretRmRun(ctx context.Context, o *secretRmOptions) error {
	f, names := o.f, o.names
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := h.Secrets().Remove(ctx, name)
		if errors.Is(err, vault.ErrNotFound) {
			return cmdutil.WithHint(fmt.Errorf("there is no secret %s", config.Visible(name)), "usher secret list")
		}
		if err != nil {
			return err
		}
		f.Note("forgot %s", name)
	}
	return nil
}

// completeSecrets completes names of secrets, at most n. It needs no key.
func completeSecrets(f *cmdutil.Factory, n int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if n >= 0 && len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		h, err := f.Open(c.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names, err := h.Secrets().Names(c.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return cmdutil.Offer(names, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}
