package login

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

type logoutOptions struct {
	f        *cmdutil.Factory
	accounts []string
}

func newCmdLogout(f *cmdutil.Factory, runF func(context.Context, *logoutOptions) error) *cobra.Command {
	o := &logoutOptions{f: f}
	if runF == nil {
		runF = logoutRun
	}
	return &cobra.Command{
		Use: "logout SERVER[@ACCOUNT]…", Short: "Log out of a server", GroupID: "use", Args: cmdutil.RangeArgs(1, -1),
		Long: `Log out: the tokens are revoked where the server offers that, then deleted here,
together with the client registration when no other login uses it.`,
		Example:           "  usher logout linear\n  usher logout linear@work",
		ValidArgsFunction: cmdutil.CompleteServers(f, -1),
		RunE: func(c *cobra.Command, args []string) error {
			o.accounts = args
			return runF(c.Context(), o)
		},
	}
}

func logoutRun(ctx context.Context, o *logoutOptions) error {
	f, accounts := o.f, o.accounts
	h, err := f.Open(ctx)
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
			f.Note("logged out of %s (token revoked at the provider)", account)
		default:
			f.Note("%s is logged out", account)
		}
		for _, p := range out.Problems {
			f.Note("  %v", p)
		}
	}
	return nil
}
