package logins

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
)

// options say where the answer comes back to: through the gateway where browsers reach
// it from outside, so that any replica can take it, else to this machine. A gateway
// cannot tell whose browser brings an answer, so it takes those of its own principal
// only; and an address that the definition of a server names is kept.
func (l *AgentLogins) options(a auth.Account, srv config.Server) *auth.LoginOptions {
	public := l.m.config().Usher.Gateway.PublicURL
	named := srv.OAuth != nil && srv.OAuth.RedirectURI != ""
	if public == "" || named || cmp.Or(a.Principal, vault.Local) != l.m.principal {
		return &auth.LoginOptions{Listen: true, Where: loginWhere}
	}
	return &auth.LoginOptions{Redirect: callbackAddress(public), Where: loginWhere}
}

// loginWhere says who began a login, for people who look at those that wait.
const loginWhere = "an agent"

// begin starts a login in the way that the server or the situation asks for: with a
// device code where the configuration says so, or where no browser of the person can
// bring the answer here and the server offers it; else with a page.
func (l *AgentLogins) begin(ctx context.Context, a auth.Account, srv config.Server) (*auth.Pending, string, error) {
	grant := ""
	if srv.OAuth != nil {
		grant = srv.OAuth.Grant
	}
	opt := l.options(a, srv)
	device := grant == config.GrantDeviceCode
	if device || grant == "" && !l.answerArrives(opt.Redirect) {
		p, err := l.m.engine.BeginDevice(ctx, a, srv, opt)
		if err == nil || device || ctx.Err() != nil {
			return p, policy.FlowDevice, err
		}
	}
	p, err := l.m.engine.Begin(ctx, a, srv, opt)
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "listen" { // the person pastes the answer
		opt.Listen = false
		p, err = l.m.engine.Begin(ctx, a, srv, opt)
		return p, policy.FlowPaste, err
	}
	if errors.Is(err, auth.ErrNoFlow) && grant == "" {
		if p, deviceErr := l.m.engine.BeginDevice(ctx, a, srv, opt); deviceErr == nil {
			return p, policy.FlowDevice, nil
		}
	}
	if err != nil {
		return nil, "", err
	}
	return p, l.flowOf(p), nil
}

// join returns a login of the account that waits already and can be finished: a
// person must not get another code or page each time a call is repeated.
func (l *AgentLogins) join(ctx context.Context, a auth.Account, srv config.Server) *auth.Pending {
	waiting, err := l.m.engine.Pendings(ctx, cmp.Or(a.Principal, vault.Local))
	if err != nil {
		return nil
	}
	deviceOnly := srv.OAuth != nil && srv.OAuth.Grant == config.GrantDeviceCode
	wants := l.m.engine.Wants(ctx, a)
	var best *auth.Pending
	for _, p := range waiting {
		own := p.Account.Server == a.Server && p.Account.Label == a.Label && p.ServerURL == srv.URL
		if !own || deviceOnly && p.Device == nil || !containsAll(p.Scopes, wants) || best != nil && !p.Created.After(best.Created) {
			continue
		}
		if l.joinable(ctx, p) {
			best = &p
		}
	}
	return best
}

// joinable reports whether the answer to a waiting login would arrive.
func (l *AgentLogins) joinable(ctx context.Context, p auth.Pending) bool {
	listens := p.Device == nil && loopback(p.RedirectURI) && l.answerArrives(p.RedirectURI)
	return bulk.NewEngine(l.m.engine, nil).Joinable(ctx, p, bulk.Redirect{Device: true, Listen: listens})
}

// flowOf says what the person has to do for a login.
func (l *AgentLogins) flowOf(p *auth.Pending) string {
	switch {
	case p.Device != nil:
		return policy.FlowDevice
	case l.answerArrives(p.RedirectURI):
		return policy.FlowBrowser
	}
	return policy.FlowPaste
}

// answerArrives reports whether a browser of the person can be expected to bring the
// answer to a redirect address (empty: a loopback address) here: at the gateway's own
// address always; at a loopback address unless the person sits at another machine,
// which they do over SSH and with a gateway that other machines reach.
func (l *AgentLogins) answerArrives(redirect string) bool {
	g := l.m.config().Usher.Gateway
	switch {
	case g.PublicURL != "" && redirect == callbackAddress(g.PublicURL):
		return true
	case redirect != "" && !loopback(redirect), g.PublicURL != "", !localListen(g.HTTP):
		return false
	}
	return l.m.getenv("BROWSER") != "" || l.m.getenv("SSH_CONNECTION") == "" && l.m.getenv("SSH_TTY") == ""
}

// loopback reports whether an address is one of this machine alone.
func loopback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && loopbackHost(u.Hostname())
}

func loopbackHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// localListen reports whether a gateway that listens there is for this machine only.
func localListen(address string) bool {
	if address == "" || strings.HasPrefix(address, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	return err == nil && loopbackHost(host)
}

func containsAll(have, want []string) bool {
	set := make(map[string]bool, len(have))
	for _, s := range have {
		set[s] = true
	}
	for _, s := range want {
		if !set[s] {
			return false
		}
	}
	return true
}

// shownLogin is a pending login as agents read it.
func shownLogin(p *auth.Pending, flow string) policy.Login {
	out := policy.Login{
		Server: p.Account.String(), Flow: flow, State: policy.LoginPending, Handle: handle(p.State), URL: p.AuthorizeURL, Expires: p.Expires,
	}
	if p.Device != nil {
		out.URL, out.Code = p.Device.VerificationURI, p.Device.UserCode
	}
	return out
}

// follow makes what is connected use the login as soon as the person is done, and
// remembers why it failed. A login is followed once.
func (l *AgentLogins) follow(p *auth.Pending) {
	if !l.m.pending.follow(p.State) {
		return
	}
	l.m.background.Go(func() {
		defer l.m.pending.leave(p.State)
		ctx, stop := context.WithTimeout(l.m.life, max(0, time.Until(p.Expires))+loginGrace)
		defer stop()
		wait := l.m.engine.Wait
		if p.Device != nil {
			wait = l.m.engine.PollDevice
		}
		_, err := wait(ctx, p.State)
		if err != nil {
			if login, _ := l.m.engine.Obtained(ctx, p); login != nil {
				err = nil // it was finished elsewhere
			}
		}
		if err != nil {
			l.ended(ctx, p, err)
			return
		}
		l.m.pending.clear(p.Account)
		_ = l.m.Reconnect(ctx, p.Account) // the next call connects anyway
	})
}

// loginGrace is how long a login may take to end after its time is up.
const loginGrace = 10 * time.Second

// ended takes in that a login failed, unless another login of the account waits.
func (l *AgentLogins) ended(ctx context.Context, p *auth.Pending, err error) {
	if l.m.life.Err() != nil || errors.Is(err, auth.ErrReplaced) || errors.Is(err, auth.ErrClosed) {
		return
	}
	if s, statusErr := l.m.engine.Status(ctx, p.Account); statusErr == nil && s.Pending != nil && s.Pending.State != p.State {
		return
	}
	l.failed(ctx, p.Account, err)
}
