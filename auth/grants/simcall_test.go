package grants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/vault"
)

// simNet is the network of one process.
type simNet struct {
	r *simRun
	p *simProc
}

// RoundTrip carries a request to the model's token endpoint or to its resource.
func (n *simNet) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host == mcpHost {
		return n.resource(req)
	}
	refresh, err := spentToken(req)
	if err != nil {
		return nil, err
	}
	sent := time.Now()
	n.p.again.Store(false)
	n.p.asking.Add(1)
	defer n.p.asking.Add(-1)
	v, err := n.r.park(req.Context(), n.p, "wire: token request", true)
	if err != nil {
		return nil, err
	}
	n.r.asked(n.p, sent)
	switch v {
	case refuse:
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	case reset:
		n.p.losses++
		return nil, io.EOF
	case hang:
		<-req.Context().Done()
		return nil, req.Context().Err()
	case tooMany:
		resp := simResponse(req, http.StatusTooManyRequests, "{}")
		resp.Header.Set("Retry-After", "90")
		return n.back(req, resp, nil, sent)
	case broken:
		return n.back(req, simResponse(req, http.StatusServiceUnavailable, "<html>"), nil, sent)
	}
	c := n.r.spent(n.p, refresh)
	return n.back(req, n.r.server.answer(req, c), c, sent)
}

// back carries an answer of the token endpoint, if it arrives.
func (n *simNet) back(req *http.Request, resp *http.Response, c *simCommit, sent time.Time) (*http.Response, error) {
	v, err := n.r.park(req.Context(), n.p, "wire: token answer", true)
	if err == nil && v == proceed {
		return resp, nil
	}
	if v == reset {
		n.p.losses++
		n.p.again.Store(c != nil && n.p.losses == 1 && time.Since(sent) < lostWindow)
	}
	if c != nil && v != dies {
		c.lost = true
		n.r.figures.Lost++
		if v != reset || !n.r.server.grace || c.again || time.Since(c.at) > simGrace {
			c.family.excuse = "the answer was lost and the server does not repeat it"
		}
	}
	if v == hang && err == nil {
		<-req.Context().Done()
		err = req.Context().Err()
	}
	if err == nil {
		err = io.EOF
	}
	return nil, err
}

// resource is a call with a token.
func (n *simNet) resource(req *http.Request) (*http.Response, error) {
	token := bearer(req)
	if _, err := n.r.park(req.Context(), n.p, "wire: call with "+token, true); err != nil {
		return nil, err
	}
	n.r.used(n.p, token)
	if n.r.server.good(token) {
		return simResponse(req, http.StatusOK, "{}"), nil
	}
	return simResponse(req, http.StatusUnauthorized, "{}"), nil
}

func bearer(req *http.Request) string {
	return strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
}

// asked checks that a process might ask the server when it did.
func (r *simRun) asked(p *simProc, sent time.Time) {
	if r.excused() != "" {
		return
	}
	for _, o := range r.procs {
		if o != p && o.asking.Load() > 0 && !o.dead {
			r.violate("%s asks for tokens while %s does: two refreshes for one expiry", p, o)
		}
	}
	if wait := r.quiet.Sub(sent); wait > 0 && !r.lapsed {
		r.violate("%s asks for tokens %v before the server may be asked again", p, wait)
	}
}

// spent lets the server have a refresh token, and checks that it had to be spent.
func (r *simRun) spent(p *simProc, refresh string) *simCommit {
	r.figures.Asked++
	c := r.server.refresh[refresh]
	if c == nil {
		r.violate("%s sends a refresh token that was never issued", p)
		return nil
	}
	f := c.family
	cur := f.current
	if !c.spent.IsZero() && f.excuse == "" && !(cur.from == c && cur.lost) {
		r.violate("%s uses %s again: it was spent %v ago", p, refresh, time.Since(c.spent))
	}
	if !c.spent.IsZero() && !r.server.lenient(c) && cur.lost && f.excuse == "" {
		f.excuse = "the repeat came too late for the server"
	}
	if a := r.server.access[cur.access]; f.excuse == "" && !cur.lost && r.server.good(cur.access) && time.Since(a.issued) < simLife*3/4 {
		r.violate("%s refreshes although %s is good and new: two refreshes for one expiry", p, cur.access)
	}
	next := r.server.spend(refresh, p)
	if r.tracing {
		if next == nil {
			r.note(p, "is told that "+refresh+" is no good", proceed)
		} else {
			r.note(p, "gets "+next.access+" and "+next.refresh+" for "+refresh, proceed)
		}
	}
	return next
}

// used checks that a token that is used is in the store: whoever uses one that is not
// loses the login with the process.
func (r *simRun) used(p *simProc, token string) {
	a := r.server.access[token]
	switch {
	case a == nil:
		r.violate("%s uses a token that was never issued: %q", p, token)
	case !a.kept && !r.sickStore():
		r.violate("%s uses %s before it is stored", p, token)
	}
}

// start makes a process with its callers.
func (r *simRun) startProcess() *simProc {
	p := &simProc{id: len(r.procs)}
	net := &simNet{r, p}
	v := NewEnv(&simView{Memory: r.mem, r: r, p: p}, &Options{RoundTripper: net})
	v.seed = p.String()
	p.m = New(v, Hooks{ForgetClient: func(context.Context, Account) {}})
	p.m.sends.self = func() sender { return sender{Machine: "here", PID: p.id} }
	p.m.sends.stateOf = func(s sender) senderState { return r.procs[s.PID].state() }
	p.client = p.m.Transport(net)
	r.procs = append(r.procs, p)
	return p
}

// callOnce makes one request as a host does: once more if Refused says so.
func (r *simRun) callOnce(ctx context.Context, p *simProc) error {
	r.busy.Add(1)
	defer r.busy.Add(-1)
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	for try := 0; ; try++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, mcpURL, http.NoBody)
		if err != nil {
			return err
		}
		if err := p.m.Authorize(ctx, r.a, &r.srv, req); err != nil {
			return err
		}
		resp, err := p.client.RoundTrip(req)
		if err != nil {
			return err
		}
		if resp.StatusCode < 300 {
			return nil
		}
		if try == 1 {
			if a := r.server.access[bearer(req)]; !a.until.Before(begun) {
				return nil // the second one went bad meanwhile too, which is nobody's fault
			}
			return fmt.Errorf("HTTP %d", resp.StatusCode)
		}
		if _, err := r.park(ctx, p, "wire: hears of a 401", true); err != nil {
			return err
		}
		if err := p.m.Refused(ctx, r.a, r.srv, oauth.Challenge{Status: resp.StatusCode}); err != nil {
			return err
		}
	}
}

// login lets a user log in again.
func (r *simRun) login(p *simProc) {
	c := r.server.login()
	r.note(p, "a person logs in: "+c.access+" and "+c.refresh, proceed)
	r.left.Add(1)
	r.pending.Go(func() {
		defer r.left.Add(-1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err := p.m.Grants.storeLogin(ctx, r.a.Normal(), r.grantOf(c))
		if _, gone := r.park(context.Background(), p, "wire: ends a login", true); gone == nil && err != nil && !r.sickStore() {
			r.violate("a login could not be stored: %v", err)
		}
	})
}

func (r *simRun) grantOf(c *simCommit) *Grant {
	return &Grant{
		Flow: FlowCode, ServerURL: mcpURL, Resource: mcpURL, TokenEndpoint: "https://" + asHost + "/token",
		Client: oauth.Credentials{ID: "c", Method: oauth.MethodNone, Source: oauth.SourceConfigured}, Type: "Bearer",
		Access: oauth.NewStoredSecret(c.access), Refresh: oauth.NewStoredSecret(c.refresh), Obtained: time.Now(), Expires: c.at.Add(simLife),
	}
}

// called checks how a call ended.
func (r *simRun) called(p *simProc, err error) {
	r.figures.Calls++
	if err == nil || p.dead {
		return
	}
	r.figures.Failed++
	if r.tracing {
		r.note(p, "its call fails: "+err.Error(), proceed)
	}
	if r.plan.harmless() {
		r.violate("a call of %s failed although nothing was wrong: %v", p, err)
	}
}

// simKey is the key of the one grant.
func (r *simRun) simKey() vault.Key { return r.a.Normal().Key(vault.KindGrant) }
