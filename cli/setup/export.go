package setup

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients"
)

type exportOptions struct {
	f       *cmdutil.Factory
	client  string
	names   []string
	secrets bool
}

func newCmdExport(f *cmdutil.Factory, runF func(context.Context, *exportOptions) error) *cobra.Command {
	o := &exportOptions{f: f}
	if runF == nil {
		runF = exportRun
	}
	c := &cobra.Command{
		Use: "export CLIENT [NAME…]", Short: "Export servers in another client's format", GroupID: "config",
		Long: `Print your servers in another client's format, to stdout. No file is changed. Project
servers that you have not approved are left out. Placeholders are translated to the
client's syntax; a literal credential becomes a variable to set, unless --secrets is
given.

Clients: ` + strings.Join(clientNames(), ", ") + `.`,
		Example: `  usher export cursor > .cursor/mcp.json
  usher export vscode github docs
  usher export codex --secrets >> ~/.codex/config.toml`,
		Args: cmdutil.RangeArgs(1, -1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return cmdutil.Offer(clientNames(), prefix), cobra.ShellCompDirectiveNoFileComp
			}
			return cmdutil.ServerNames(f, args[1:], prefix)
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.client, o.names = args[0], args[1:]
			return runF(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.secrets, "secrets", false, "write literal credentials out")
	return c
}

func exportRun(ctx context.Context, o *exportOptions) error {
	f := o.f
	if !slices.Contains(clientNames(), o.client) {
		return cmdutil.Usagef("usher export "+strings.Join(clientNames(), "|"), "there is no client %s", config.Visible(o.client))
	}
	cfg, err := f.Config()
	if err != nil {
		return err
	}
	if err := cmdutil.KnownServers(cfg, o.names); err != nil {
		return err
	}
	list, shown := exportable(ctx, f, cfg, o)
	text, notes, err := clients.Export(o.client, list)
	if err != nil {
		return err
	}
	for _, n := range notes {
		f.Note("%s", cmdutil.CleanLine(n))
	}
	if shown {
		f.Note("the output contains plaintext secrets")
		f.Note("do not paste it anywhere; usher export without --secrets is safe to share")
	}
	if f.IO.OutTTY {
		text = []byte(cmdutil.Clean(string(text)))
	}
	_, err = f.IO.Out.Write(text)
	return err
}

// exportable picks the servers, and says whether credentials are among them. What
// is held back stays here: another client would start it without asking.
func exportable(ctx context.Context, f *cmdutil.Factory, cfg *config.Config, o *exportOptions) (list []config.Server, secrets bool) {
	held := cmdutil.HeldBack(ctx, f, cfg)
	for _, s := range cfg.Servers {
		if len(o.names) > 0 && !slices.Contains(o.names, s.Name) {
			continue
		}
		if s.Problem == nil && held(s) != "" {
			f.Note("%s: left out: held back; %s", s.Name, cmdutil.Remedy(f, "usher approve "+s.Name))
			continue
		}
		secret := len(cmdutil.LiteralSecrets(s)) > 0
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
