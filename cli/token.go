package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/gateway"
)

func newCmdToken(a *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "Make and revoke the tokens that let agents in", GroupID: "config", Args: noSubcommand,
		Example: `  usher token mint --name ci --servers 'docs*' --ttl 24h
  usher token list
  usher token revoke ID`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCmdTokenMint(a), newCmdTokenList(a), newCmdTokenRevoke(a), newCmdTokenScript(a))
	return c
}

func newCmdTokenMint(a *factory) *cobra.Command {
	var m gateway.Mint
	c := &cobra.Command{
		Use: "mint", Short: "Make a token; its text is shown once", Args: exactly(0),
		Example: "  usher token mint --name ci --servers docs,github --tools 'github/get_*' --ttl 24h",
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := a.open(c.Context())
			if err != nil {
				return err
			}
			text, token, err := h.Frontend().Tokens().Mint(c.Context(), m)
			if err != nil {
				return err
			}
			a.note("token %s; it is shown only now, and kept as a hash:", token.ID)
			_, err = fmt.Fprintln(a.io.Out, text)
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&m.Name, "name", "", "what it is for, in your `words`")
	f.StringVar(&m.Principal, "principal", "", "whose logins it uses (default: yours)")
	f.StringSliceVar(&m.Servers, "servers", nil, "only these servers (`globs`)")
	f.StringSliceVar(&m.Tools, "tools", nil, "only these tools (`globs` such as github/get_*)")
	f.StringSliceVar(&m.Profiles, "profiles", nil, "only the endpoints of these profiles (`names`)")
	f.DurationVar(&m.TTL, "ttl", 0, "how long it is good for, such as 24h (default: for ever)")
	return c
}

func newCmdTokenList(a *factory) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the tokens", Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error { return a.tokenList(c.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *factory) tokenList(ctx context.Context, asJSON bool) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	all, err := h.Frontend().Tokens().List(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(append([]gateway.Token{}, all...))
	}
	if len(all) == 0 {
		a.note("there are no tokens; usher token mint")
		return nil
	}
	t := table{head: []string{"ID", "NAME", "SERVERS", "TOOLS", "PROFILES", "EXPIRES"}}
	for _, k := range all {
		expires := "never"
		if !k.Expires.IsZero() {
			expires = k.Expires.Local().Format(time.DateTime)
		}
		t.add(k.ID, cleanLine(k.Name), orAll(k.Servers), orAll(k.Tools), orAll(k.Profiles), expires)
	}
	t.write(a.io.Out, a.tableWidth())
	return nil
}

func orAll(globs []string) string {
	if len(globs) == 0 {
		return "all"
	}
	return cleanLine(strings.Join(globs, " "))
}

func newCmdTokenRevoke(a *factory) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End a token", Args: exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.open(c.Context())
			if err != nil {
				return err
			}
			if err := h.Frontend().Tokens().Revoke(c.Context(), args[0]); err != nil {
				return err
			}
			a.note("token %s is revoked", args[0])
			return nil
		},
	}
}
