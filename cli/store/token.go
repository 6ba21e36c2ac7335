package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/gateway"
)

func newCmdToken(f *cmdutil.Factory) *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "Make and revoke the tokens that let agents in", GroupID: "config", Args: cmdutil.NoSubcommand,
		Example: `  usher token mint --name ci --servers 'docs*' --ttl 24h
  usher token list
  usher token revoke ID`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCmdTokenMint(f), newCmdTokenList(f), newCmdTokenRevoke(f), newCmdTokenScript(f))
	return c
}

func newCmdTokenMint(f *cmdutil.Factory) *cobra.Command {
	var m gateway.Mint
	c := &cobra.Command{
		Use: "mint", Short: "Make a token; its text is shown once", Args: cmdutil.ExactArgs(0),
		Example: "  usher token mint --name ci --servers docs,github --tools 'github/get_*' --ttl 24h",
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := f.Open(c.Context())
			if err != nil {
				return err
			}
			text, token, err := h.Tokens().Mint(c.Context(), m)
			if err != nil {
				return err
			}
			f.Note("token %s; it is shown only now, and kept as a hash:", token.ID)
			_, err = fmt.Fprintln(f.IO.Out, text)
			return err
		},
	}
	flags := c.Flags()
	flags.StringVar(&m.Name, "name", "", "what it is for, in your `words`")
	flags.StringVar(&m.Principal, "principal", "", "whose logins it uses (default: yours)")
	flags.StringSliceVar(&m.Servers, "servers", nil, "only these servers (`globs`)")
	flags.StringSliceVar(&m.Tools, "tools", nil, "only these tools (`globs` such as github/get_*)")
	flags.StringSliceVar(&m.Profiles, "profiles", nil, "only the endpoints of these profiles (`names`)")
	flags.DurationVar(&m.TTL, "ttl", 0, "how long it is good for, such as 24h (default: for ever)")
	return c
}

func newCmdTokenList(f *cmdutil.Factory) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the tokens", Args: cmdutil.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return tokenListRun(c.Context(), f, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func tokenListRun(ctx context.Context, f *cmdutil.Factory, asJSON bool) error {
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	all, err := h.Tokens().List(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return f.PrintJSON(append([]gateway.Token{}, all...))
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

func newCmdTokenRevoke(f *cmdutil.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End a token", Args: cmdutil.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := f.Open(c.Context())
			if err != nil {
				return err
			}
			if err := h.Tokens().Revoke(c.Context(), args[0]); err != nil {
				return err
			}
			f.Note("token %s is revoked", args[0])
			return nil
		},
	}
}
