package inspect

import (
	"context"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/app"
)

// addLogins adds what only the store knows: accounts that nobody uses now, logins
// that a person has begun, and those whose server is gone.
func (b *statusBoard) addLogins(ctx context.Context, h *app.App) {
	accounts, err := h.Auth().Accounts(ctx, h.Logins().DefaultAccount("").Principal)
	if err != nil {
		b.problems = append(b.problems, err)
	}
	for _, s := range accounts {
		label := s.Account.String()
		srv, configured := h.Config().Server(s.Account.Server)
		if s.Pending != nil {
			w := statusLogin{Account: label, Started: s.Pending.Created, Command: s.Pending.Command(), Removed: !configured}
			if w.Removed {
				w.Command = "usher auth prune"
			}
			b.Waiting = append(b.Waiting, w)
		}
		switch {
		case !configured && s.State != auth.StatePending:
			b.Orphans = append(b.Orphans, label)
		case !configured, slices.ContainsFunc(b.Servers, func(r statusServer) bool { return r.AccountName() == label }):
		default:
			b.add(host.ServerStatus{
				Name: srv.Name, Account: s.Account.Label, State: host.Disconnected, Transport: string(srv.Transport),
				Lazy: srv.IsLazy(), Circuit: "closed",
				Auth: host.AuthStatus{State: string(s.State), Reason: s.Reason, Command: s.Command, Expires: s.Expires, CanRefresh: s.CanRefresh},
			})
		}
	}
	b.sort()
}

// oneLine is a reason without its line breaks, and without what the column says.
func oneLine(reason string) string {
	return strings.TrimPrefix(cmdutil.CleanLine(reason), "login required: ")
}
