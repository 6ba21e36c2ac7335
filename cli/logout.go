package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newCmdLogout(a *factory) *cobra.Command {
	return &cobra.Command{
		Use: "logout SERVER[@ACCOUNT]…", Short: "Log out of a server", GroupID: "use", Args: between(1, -1),
		Long: `Log out: the tokens are revoked where the server offers that, then deleted here,
together with the client registration when no other login uses it.`,
		Example:           "  usher logout linear\n  usher logout linear@work",
		ValidArgsFunction: a.completeServers(-1),
		RunE:              func(c *cobra.Command, args []string) error { return a.logout(c.Context(), args) },
	}
}

func (a *factory) logout(ctx context.Context, accounts []string) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	for _, text := range accounts {
		account, err := h.Logins().Account(text)
		if err != nil {
			return err
		}
		out, err := h.Logins().Logout(ctx, account)
		if err != nil {
			return err
		}
		switch {
		case out.Revoked:
			a.note("%s is logged out; the server was told", account)
		default:
			a.note("%s is logged out", account)
		}
		for _, p := range out.Problems {
			a.note("  %v", p)
		}
	}
	return nil
}
