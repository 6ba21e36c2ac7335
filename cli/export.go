package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients"
)

type exportOptions struct {
	client  string
	names   []string
	secrets bool
}

func newCmdExport(a *factory) *cobra.Command {
	var o exportOptions
	c := &cobra.Command{
		Use: "export CLIENT [NAME…]", Short: "Print your servers as another client's file", GroupID: "config",
		Long: `Print your servers in the shape of another client's file, to standard output. No
file is changed. What a project file defines and you have not approved is left out.
Placeholders are put into the client's own words; a literal
credential becomes a variable to set, unless --secrets is given.

Clients: ` + strings.Join(clientNames(), ", ") + `.`,
		Example: `  usher export cursor > .cursor/mcp.json
  usher export vscode github docs
  usher export codex --secrets >> ~/.codex/config.toml`,
		Args: between(1, -1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return offer(clientNames(), prefix), cobra.ShellCompDirectiveNoFileComp
			}
			return a.serverNames(args[1:], prefix)
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.client, o.names = args[0], args[1:]
			return a.exportRun(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.secrets, "secrets", false, "write literal credentials out")
	return c
}

func (a *factory) exportRun(ctx context.Context, o exportOptions) error {
	if !slices.Contains(clientNames(), o.client) {
		return usagef("usher export "+strings.Join(clientNames(), "|"), "there is no client %s", config.Visible(o.client))
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if err := known(cfg, o.names); err != nil {
		return err
	}
	list, shown := a.exportable(ctx, cfg, o)
	text, notes, err := clients.Export(o.client, list)
	if err != nil {
		return err
	}
	for _, n := range notes {
		a.note("%s", cleanLine(n))
	}
	if shown {
		a.note("the output holds passwords or tokens, written out")
		a.note("do not paste it anywhere; usher export without --secrets is safe to share")
	}
	if a.io.OutTTY {
		text = []byte(clean(string(text)))
	}
	_, err = a.io.Out.Write(text)
	return err
}

// exportable picks the servers, and says whether credentials are among them. What
// is held back stays here: another client would start it without asking.
func (a *factory) exportable(ctx context.Context, cfg *config.Config, o exportOptions) (list []config.Server, secrets bool) {
	held := a.heldBack(ctx, cfg)
	for _, s := range cfg.Servers {
		if len(o.names) > 0 && !slices.Contains(o.names, s.Name) {
			continue
		}
		if s.Problem == nil && held(s) != "" {
			a.note("%s: left out: held back; %s", s.Name, a.remedy("usher approve "+s.Name))
			continue
		}
		secret := len(literalSecrets(s)) > 0
		if secret && !o.secrets {
			s = withoutSecrets(s)
		}
		secrets = secrets || secret && o.secrets
		list = append(list, s)
	}
	return list, secrets
}

// withoutSecrets puts variables in the place of credentials; what cannot be taken
// out is masked.
func withoutSecrets(s config.Server) config.Server {
	out, moved, clean := s.MoveSecrets()
	if !clean {
		return s.Masked()
	}
	n := clients.Planned{Server: out, Secrets: moved}
	secretsToVariables(&n)
	return n.Server
}
