package grants

import (
	"context"
	"errors"
	"hash/fnv"
	"net/http"
	"net/url"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
)

// When a token is renewed before it ends.
const (
	lifeFraction = 0.75
	renewBefore  = 5 * time.Minute
	jitterPart   = 0.1 // of what is left then
	// softWait is how long a request waits for a renewal while its token is good.
	softWait = 2 * time.Second
	// lastMoment is when a token is too close to its end to set out with; short
	// lives have less of it.
	lastMoment = 10 * time.Second
)

// Authorize puts the account's credential on a request to the server, renewing it
// first when it is due. It does nothing when there is no login: the server may not
// want one, and says so if it does. It also leaves a configured Authorization header
// alone. When only a person can help, the error is a [*NeedsLoginError].
//
// srv is the server's definition with its placeholders filled in.
func (m *Manager) Authorize(ctx context.Context, a Account, srv *config.Server, req *http.Request) error {
	if req.Header.Get("Authorization") != "" {
		return nil
	}
	a = a.Normal()
	g, err := m.refresher.usable(ctx, a, srv)
	if g == nil || err != nil {
		return err
	}
	then, err := url.Parse(g.ServerURL)
	if err != nil || oauth.Origin(then) != oauth.Origin(req.URL) {
		return needsLogin(a, "the login is for %s and the request goes to %s", oauth.HostOf(g.ServerURL), oauth.Clean(req.URL.Host, 100))
	}
	if g.DPoP.IsZero() {
		req.Header.Set("Authorization", "Bearer "+g.Access.Reveal())
	} else if err := m.refresher.prove(g, req); err != nil {
		return err
	}
	m.env.tokens.handed(g.Access.Secret)
	return nil
}

// prove puts a bound token and the proof of its key on a request.
func (rf *refresher) prove(g *Grant, req *http.Request) error {
	key, err := oauth.LoadDPoPKey(g.DPoP.Secret)
	if err != nil {
		return err
	}
	proof, err := key.Proof(req.Method, req.URL, g.Access.Secret, rf.nonces.Get(req.URL))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "DPoP "+g.Access.Reveal())
	req.Header.Set("DPoP", proof)
	return nil
}

// usable returns a grant to act with, renewed if need be; nil when there is none.
func (rf *refresher) usable(ctx context.Context, a Account, srv *config.Server) (*Grant, error) {
	g, err := rf.grants.Current(ctx, a)
	if g == nil || err != nil {
		return nil, err
	}
	if err := g.suits(srv.URL); err != nil {
		return nil, needsLogin(a, "%v", err)
	}
	if g.unrestricted(srv) {
		if MachineFlow(*srv) == "" {
			return nil, needsLogin(a, "the token is not restricted to this server")
		}
		return rf.renew(ctx, a, *srv, renewal{stale: g.Generation})
	}
	now := time.Now()
	if g.Ended != nil && (g.Expires.IsZero() || g.expired(now) || rf.tokens.isRefused(g.Access.Secret)) {
		return nil, needsLogin(a, "%s", g.Ended.Reason)
	}
	if reason := rf.verdicts.standing(a, g.Version); reason != "" {
		return nil, needsLogin(a, "%s", reason)
	}
	if g.Ended != nil || now.Before(rf.due(g)) || !canRenew(g, *srv) {
		// A token that is past its life and cannot be renewed is still tried: clocks
		// differ, and the server has the last word.
		return g, nil
	}
	life := g.Expires.Sub(g.Obtained)
	if now.Before(g.Expires.Add(-min(lastMoment, life/10))) {
		return rf.renewSoon(ctx, a, *srv, g), nil
	}
	fresh, err := rf.renew(ctx, a, *srv, renewal{stale: g.Generation})
	if errors.Is(err, oauth.ErrUnavailable) {
		return g, nil
	}
	return fresh, err
}

// renewSoon renews a token that is still good, and gives up waiting early.
func (rf *refresher) renewSoon(ctx context.Context, a Account, srv config.Server, g *Grant) *Grant {
	ctx, cancel := context.WithTimeout(ctx, softWait)
	defer cancel()
	if fresh, err := rf.renew(ctx, a, srv, renewal{stale: g.Generation}); err == nil {
		return fresh
	}
	return g
}

// due is when to renew: at three quarters of the life or five minutes before its
// end, whichever is later, and a little after that, differently in each process.
func (rf *refresher) due(g *Grant) time.Time {
	if g.Expires.IsZero() {
		return time.Unix(1<<40, 0) // never by the clock
	}
	life := g.Expires.Sub(g.Obtained)
	at := g.Obtained.Add(time.Duration(float64(life) * lifeFraction))
	if late := g.Expires.Add(-renewBefore); late.After(at) {
		at = late
	}
	rest := time.Duration(jitterPart * float64(g.Expires.Sub(at)))
	return at.Add(rf.spread(g.Access.String(), rest)) // the fingerprint will do
}

// spread returns a part of d that differs from process to process, so that they do
// not all do the same thing at the same moment.
func (v *Env) spread(about string, d time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(v.seed + about)) // never fails
	return time.Duration(float64(h.Sum32()%1000) / 1000 * float64(d))
}

// Renewable reports whether the grant holds what renews it.
func (g *Grant) Renewable() bool {
	switch g.Flow {
	case FlowClientCredentials, FlowJWTBearer, FlowEnterprise:
		return true
	}
	return !g.Refresh.IsZero()
}

// canRenew reports whether a grant can be renewed without a person.
func canRenew(g *Grant, srv config.Server) bool {
	if g == nil {
		return MachineFlow(srv) != ""
	}
	return MachineFlow(srv) != "" || !g.Refresh.IsZero()
}
