package login

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/cli/cmdutil"
)

// authOptions are those of the commands below auth.
type authOptions struct {
	f       *cmdutil.Factory
	account string
	json    bool
}

func newCmdAuth(f *cmdutil.Factory, runF func(context.Context, *authOptions) error) *cobra.Command {
	c := &cobra.Command{
		Use: "auth", Short: "Inspect logins and OAuth clients", GroupID: "config", Args: cmdutil.NoSubcommand,
		Example: "  usher auth list\n  usher auth show linear@work\n  usher auth explain linear\n  usher auth clients\n  usher auth prune",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	o := &authOptions{f: f}
	c.PersistentFlags().BoolVar(&o.json, "json", false, "print JSON")
	sub := func(use, short string, args cobra.PositionalArgs, run func(context.Context, *authOptions) error) {
		if runF != nil {
			run = runF
		}
		c.AddCommand(&cobra.Command{
			Use: use, Short: short, Args: args, ValidArgsFunction: cmdutil.CompleteServers(f, 1),
			RunE: func(c *cobra.Command, args []string) error {
				if len(args) > 0 {
					o.account = args[0]
				}
				return run(c.Context(), o)
			},
		})
	}
	sub("list", "List all logins", cmdutil.ExactArgs(0), authListRun)
	sub("show SERVER[@ACCOUNT]", "Show one login, without its tokens", cmdutil.ExactArgs(1), authShowRun)
	sub("explain SERVER[@ACCOUNT]", "Find out what a login would do, without doing it", cmdutil.ExactArgs(1), authExplainRun)
	sub("clients", "List the client registrations", cmdutil.ExactArgs(0), authClientsRun)
	sub("prune", "Remove unused registrations and logins that cannot be finished", cmdutil.ExactArgs(0), authPruneRun)
	return c
}

func authListRun(ctx context.Context, o *authOptions) error {
	f, asJSON := o.f, o.json
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	all, err := h.Auth().Accounts(ctx, "")
	if err != nil && len(all) == 0 {
		return err
	}
	if err != nil {
		f.Report(err)
	}
	if asJSON {
		rows := make([]authRow, len(all))
		for i, s := range all {
			rows[i] = newAuthRow(s)
		}
		return f.PrintJSON(rows)
	}
	if len(all) == 0 {
		f.Note("nobody is logged in; usher login SERVER")
		return nil
	}
	t := cmdutil.Table{Head: []string{"ACCOUNT", "STATE", "ISSUER", "EXPIRES", "NOTE"}}
	for _, s := range all {
		note := s.Command
		if s.Trouble != "" {
			note = s.Trouble
		}
		t.Add(s.Account.String(), string(s.State), cmdutil.CleanLine(s.Issuer), expiry(s), cmdutil.CleanLine(note))
	}
	t.Write(f.IO.Out, f.TableWidth())
	return nil
}

// expiry says in words how long a login lasts.
func expiry(s auth.Status) string {
	switch {
	case s.State == auth.StateNone || s.State == auth.StatePending:
		return "–"
	case s.Expires.IsZero():
		return "not said"
	case s.CanRefresh:
		return time.Until(s.Expires).Round(time.Minute).String() + ", renews"
	}
	return time.Until(s.Expires).Round(time.Minute).String()
}

// authRow is a login with --json.
type authRow struct {
	Account    string    `json:"account"`
	State      string    `json:"state"`
	Reason     string    `json:"reason,omitempty"`
	Command    string    `json:"command,omitempty"`
	Issuer     string    `json:"issuer,omitempty"`
	Flow       string    `json:"flow,omitempty"`
	ServerURL  string    `json:"server_url,omitempty"`
	ClientID   string    `json:"client_id,omitempty"`
	Client     string    `json:"client,omitempty"`
	Scopes     []string  `json:"scopes,omitempty"`
	Obtained   time.Time `json:"obtained,omitzero"`
	Expires    time.Time `json:"expires,omitzero"`
	CanRefresh bool      `json:"can_refresh"`
	Trouble    string    `json:"trouble,omitempty"`
}

func newAuthRow(s auth.Status) authRow {
	return authRow{
		Account: s.Account.String(), State: string(s.State), Reason: s.Reason, Command: s.Command, Issuer: s.Issuer,
		Flow: string(s.Flow), ServerURL: s.ServerURL, ClientID: s.ClientID, Client: s.Client, Scopes: s.Scopes,
		Obtained: s.Obtained, Expires: s.Expires, CanRefresh: s.CanRefresh, Trouble: s.Trouble,
	}
}

func authShowRun(ctx context.Context, o *authOptions) error {
	f, text, asJSON := o.f, o.account, o.json
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	account, err := h.Logins().Account(text)
	if err != nil {
		return err
	}
	s, err := h.Auth().Status(ctx, account)
	if err != nil {
		return err
	}
	row := newAuthRow(s)
	if asJSON {
		return f.PrintJSON(row)
	}
	lines(
		f, "account", row.Account, "state", row.State, "reason", row.Reason, "next", row.Command, "issuer", row.Issuer, "flow", row.Flow,
		"server", row.ServerURL, "client", strings.TrimSpace(row.ClientID+" "+row.Client), "scopes", strings.Join(row.Scopes, " "),
		"expires", expiry(s), "trouble", row.Trouble,
	)
	return nil
}

// lines prints names and values, leaving out what is empty.
func lines(f *cmdutil.Factory, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(f.IO.Out, "%-12s %s\n", pairs[i], cmdutil.CleanLine(pairs[i+1]))
		}
	}
}

// explainRow is what a login would do with --json.
type explainRow struct {
	Account          string            `json:"account"`
	ServerURL        string            `json:"server_url"`
	ResourceMetadata string            `json:"resource_metadata,omitempty"`
	Metadata         string            `json:"issuer_metadata,omitempty"`
	Issuer           string            `json:"issuer,omitempty"`
	Endpoints        map[string]string `json:"endpoints,omitempty"`
	Resource         string            `json:"resource,omitempty"`
	Scopes           []string          `json:"scopes,omitempty"`
	ScopesFrom       string            `json:"scopes_from,omitempty"`
	Client           string            `json:"client,omitempty"`
	ClientID         string            `json:"client_id,omitempty"`
	Flows            []auth.Flow       `json:"flows,omitempty"`
	Authorize        map[string]string `json:"authorize,omitempty"`
	Token            []string          `json:"token,omitempty"`
	Problems         []string          `json:"problems,omitempty"`
}

func newExplainRow(x *auth.Explanation) explainRow {
	return explainRow{
		Account: x.Account.String(), ServerURL: x.ServerURL, ResourceMetadata: x.ResourceMetadata, Metadata: x.Metadata,
		Issuer: x.Issuer, Endpoints: x.Endpoints, Resource: x.Resource, Scopes: x.Scopes, ScopesFrom: x.ScopesFrom,
		Client: x.Client, ClientID: x.ClientID, Flows: x.Flows, Authorize: x.Authorize, Token: x.Token, Problems: x.Problems,
	}
}

func authExplainRun(ctx context.Context, o *authOptions) error {
	f, text, asJSON := o.f, o.account, o.json
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	account, err := h.Logins().Account(text)
	if err != nil {
		return err
	}
	srv, err := h.Logins().Target(ctx, account)
	if err != nil {
		return err
	}
	x, err := h.Auth().Explain(ctx, account, srv, nil)
	if x != nil && asJSON {
		if jerr := f.PrintJSON(newExplainRow(x)); jerr != nil {
			return jerr
		}
		return err
	}
	if x != nil {
		lines(
			f, "server", x.ServerURL, "resource doc", x.ResourceMetadata, "issuer", x.Issuer, "issuer doc", x.Metadata,
			"resource", x.Resource, "scopes", strings.TrimSpace(strings.Join(x.Scopes, " ")+" "+x.ScopesFrom),
			"client", strings.TrimSpace(x.Client+" "+x.ClientID), "flows", fmt.Sprint(x.Flows),
		)
		for _, p := range x.Problems {
			lines(f, "problem", p)
		}
	}
	return err
}

// clientRow is a client registration with --json.
type clientRow struct {
	Issuer   string    `json:"issuer"`
	ClientID string    `json:"client_id"`
	Redirect string    `json:"redirect"`
	Class    string    `json:"class"`
	Created  time.Time `json:"created"`
	InUse    bool      `json:"in_use"`
}

func authClientsRun(ctx context.Context, o *authOptions) error {
	f, asJSON := o.f, o.json
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	all, err := h.Auth().Clients(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		rows := make([]clientRow, len(all))
		for i, c := range all {
			rows[i] = clientRow(c)
		}
		return f.PrintJSON(rows)
	}
	t := cmdutil.Table{Head: []string{"ISSUER", "CLIENT", "REDIRECT", "CREATED", "USED"}}
	for _, c := range all {
		used := "no"
		if c.InUse {
			used = "yes"
		}
		t.Add(cmdutil.CleanLine(c.Issuer), cmdutil.CleanLine(c.ClientID), cmdutil.CleanLine(c.Redirect), c.Created.Local().Format(time.DateOnly), used)
	}
	t.Write(f.IO.Out, f.TableWidth())
	return nil
}

func authPruneRun(ctx context.Context, o *authOptions) error {
	f, asJSON := o.f, o.json
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	removed, err := h.Auth().PruneRemoved(ctx, h.Logins().DefaultAccount("").Principal, func(server string) bool {
		_, configured := h.Config().Server(server)
		return configured
	})
	if err != nil {
		return err
	}
	p, err := h.Auth().Prune(ctx)
	if err != nil {
		return err
	}
	p.Pending += removed
	if asJSON {
		return f.PrintJSON(map[string]int{"clients": p.Clients, "pending": p.Pending})
	}
	f.Note("removed %d client registrations and %d logins that cannot be finished any more", p.Clients, p.Pending)
	for _, problem := range p.Problems {
		f.Note("  %v", problem)
	}
	return nil
}
