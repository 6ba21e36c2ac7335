package auth

import (
	"context"
	"net/url"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
)

// resumeLife is how long a login must still have to be shown to a person again.
const resumeLife = time.Minute

// Resume returns the newest login of an account that waits for a person and that a new
// one with these options would only repeat: one of the same flow, at the same server,
// for at least the same scopes. It is nil if there is none. With options.Listen this
// process takes the answer at the login's loopback address, if no other process does.
func (e *Engine) Resume(ctx context.Context, a Account, srv config.Server, flow Flow, options *LoginOptions) (*Pending, error) {
	a = a.Normal()
	var opt LoginOptions
	if options != nil {
		opt = *options
	}
	all, err := e.Pendings(ctx, a.Principal)
	if err != nil {
		return nil, err
	}
	var best *Pending
	for _, p := range all {
		same := p.Account == a && p.Flow == flow && p.ServerURL == srv.URL && time.Until(p.Expires) >= resumeLife
		if same && len(oauth.MissingScopes(opt.Scopes, p.Scopes)) == 0 && (best == nil || p.Created.After(best.Created)) {
			best = &p
		}
	}
	if best != nil && opt.Listen && flow == FlowCode {
		if u, err := url.Parse(best.RedirectURI); err == nil {
			// Where another program holds the port, the answer can still be pasted.
			_ = e.callbacks.server.ListenOn(u, e.callbacks.identity(ctx).ID)
		}
	}
	return best, nil
}

// Command is what a person types to finish the login, from any terminal.
func (p *Pending) Command() string {
	if p.Device != nil {
		return p.Account.LoginCommand() + " --device"
	}
	return p.Account.LoginCommand() + " --paste"
}

// PruneRemoved forgets the logins of a principal that wait for a person and whose
// server is not configured any more, and says how many there were.
func (e *Engine) PruneRemoved(ctx context.Context, principal string, configured func(server string) bool) (int, error) {
	all, err := e.Pendings(ctx, principal)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range all {
		if configured(p.Account.Server) {
			continue
		}
		if err := e.Cancel(ctx, p.State); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
