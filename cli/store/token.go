package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/gateway/authn"
)

func newCmdToken(f *cmdutil.Factory) *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "Manage gateway access tokens", GroupID: "config", Args: cmdutil.NoSubcommand,
		Example: `  usher token mint --name ci --servers 'docs*' --ttl 24h
  usher token list
  usher token revoke ID`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCmdTokenMint(f, nil), newCmdTokenList(f, nil), newCmdTokenRevoke(f, nil), newCmdTokenScript(f, nil))
	return c
}

type tokenMintOptions struct {
	f *cmdutil.Factory
	authn.Mint
}

func newCmdTokenMint(f *cmdutil.Factory, runF func(context.Context, *tokenMintOptions) error) *cobra.Command {
	o := &tokenMintOptions{f: f}
	if runF == nil {
		runF = tokenMintRun
	}
	c := &cobra.Command{
		Use: "mint", Short: "Create a token (shown once)", Args: cmdutil.ExactArgs(0),
		Example: "  usher token mint --name ci --servers docs,github --tools 'github/get_*' --ttl 24h",
		RunE:    func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	flags := c.Flags()
	flags.StringVar(&o.Name, "name", "", "`description` of what it is for")
	flags.StringVar(&o.Principal, "principal", "", "whose logins it uses (default: yours)")
	flags.StringSliceVar(&o.Servers, "servers", nil, "only these servers (`globs`)")
	flags.StringSliceVar(&o.Tools, "tools", nil, "only these tools (`globs` such as github/get_*)")
	flags.StringSliceVar(&o.Profiles, "profiles", nil, "only the endpoints of these profiles (`names`)")
	flags.DurationVar(&o.TTL, "ttl", 0, "lifetime, such as 24h (default: never expires)")
	return c
}

func tokenMintRun(ctx context.Context, o *tokenMintOptions) error {
	h, err := o.f.Open(ctx)
	if err != nil {
		return err
	}
	text, token, err := h.Frontend().Tokens().Mint(ctx, o.Mint)
	if err != nil {
		return err
	}
	o.f.Note("token %s; it is shown only once; usher stores a hash:", token.ID)
	_, err = fmt.Fprintln(o.f.IO.Out, text)
	return err
}

type tokenListOptions struct {
	f    *cmdutil.Factory
	json bool
}

func newCmdTokenList(f *cmdutil.Factory, runF func(context.Context, *tokenListOptions) error) *cobra.Command {
	o := &tokenListOptions{f: f}
	if runF == nil {
		runF = tokenListRun
	}
	c := &cobra.Command{
		Use: "list", Short: "List the tokens", Args: cmdutil.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func tokenListRun(ctx context.Context, o *tokenListOptions) error {
	f, asJSON := o.f, o.json
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	all, err := h.Frontend().Tokens().List(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return f.PrintJSON(append([]authn.Token{}, all...))
	}
	if len(all) == 0 {
		f.Note("there are no tokens; usher token mint")
		return nil
	}
	t := cmdutil.Table{Head: []string{"ID", "NAME", "SERVERS", "TOOLS", "PROFILES", "EXPIRES"}}
	for _, k := range all {
		expires := "never"
		if !k.Expires.IsZero() {
			expires = k.Expires.Local().Format(time.DateTime)
		}
		t.Add(k.ID, cmdutil.CleanLine(k.Name), orAll(k.Servers), orAll(k.Tools), orAll(k.Profiles), expires)
	}
	t.Write(f.IO.Out, f.TableWidth())
	return nil
}

func orAll(globs []string) string {
	if len(globs) == 0 {
		return "all"
	}
	return cmdutil.CleanLine(strings.Join(globs, " "))
}

type tokenRevokeOptions struct {
	f  *cmdutil.Factory
	id string
}

func newCmdTokenRevoke(f *cmdutil.Factory, runF func(context.Context, *tokenRevokeOptions) error) *cobra.Command {
	o := &tokenRevokeOptions{f: f}
	if runF == nil {
		runF = tokenRevokeRun
	}
	return &cobra.Command{
		Use: "revoke ID", Short: "Revoke a token", Args: cmdutil.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.id = args[0]
			return runF(c.Context(), o)
		},
	}
}

func tokenRevokeRun(ctx context.Context, o *tokenRevokeOptions) error {
	h, err := o.f.Open(ctx)
	if err != nil {
		return err
	}
	err = h.Frontend().Tokens().Revoke(ctx, o.id)
	if errors.Is(err, authn.ErrNoToken) {
		return cmdutil.WithHint(err, "usher token list")
	}
	if err != nil {
		return err
	}
	o.f.Note("token %s is revoked", o.id)
	return nil
}
