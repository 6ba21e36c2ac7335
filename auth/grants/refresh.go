package grants

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/vault"
)

// Bounds of a renewal.
const (
	// refreshLease is renewed while the work goes on. It is shorter than the time for
	// which servers accept the previous refresh token once more, so that after a
	// crash another process comes in time to ask again.
	refreshLease = 6 * time.Second
	renewLimit   = 2 * time.Minute
	// lostWindow is how long after the first try a lost answer may be asked for
	// again with the old refresh token.
	lostWindow = 10 * time.Second
	saveLimit  = 20 * time.Second
	tryLimit   = 5 * time.Second // of one try to save
)

// renewal says what is wanted.
type renewal struct {
	// stale is the generation that is no good any more: a newer one is taken as it is.
	stale int64
	// always asks for new tokens whatever there is.
	always bool
	// challenge is what the server said, if that is why.
	challenge *oauth.Challenge
}

// refresher gets new tokens for stored logins, one process at a time.
type refresher struct {
	*Env

	grants   *Store
	failures *failureLog
	sends    *sendLog
	// obtain asks for a token as the configuration says, without a user and without a
	// refresh token. It sends one request to the token endpoint and does not repeat it.
	obtain func(context.Context, Account, config.Server, *oauth.Challenge) (*Grant, *oauth.TokenResponse, error)
}

// renew gets tokens newer than the stale ones: made here, by another goroutine or by
// another process. Of all that want the same at once, in all processes, one asks the
// authorization server. The work goes on when the caller leaves.
func (rf *refresher) renew(ctx context.Context, a Account, srv config.Server, r renewal) (*Grant, error) {
	for range 3 {
		ch := rf.flights.DoChan(a.Key(vault.KindGrant).String(), func() (any, error) {
			if !rf.enter() {
				return nil, ErrClosed
			}
			defer rf.work.Done()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewLimit)
			defer cancel()
			// Close ends waiting for others. What was sent is waited for all the same.
			defer context.AfterFunc(rf.Life, cancel)()
			return rf.renewWhenFirst(ctx, a, srv, r)
		})
		select {
		case got := <-ch:
			if got.Err != nil {
				return nil, got.Err
			}
			if g := got.Val.(*Grant); r.always || g.Generation > r.stale {
				return g, nil
			}
			// Joined a flight that had set out for less.
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, &UnavailableError{Account: a, Reason: "too many renewals at once", RetryAfter: time.Second}
}

// renewWhenFirst is renewOnce, again as long as another process may have sent the same
// refresh token and may still store what it gets for it.
func (rf *refresher) renewWhenFirst(ctx context.Context, a Account, srv config.Server, r renewal) (*Grant, error) {
	var stopped time.Duration
	for tries := 1; ; {
		g, err := rf.renewOnce(ctx, a, srv, r)
		if err == nil {
			return g, nil
		}
		wait := firstBackoff / 4
		flight, inFlight := errors.AsType[*inFlightError](err)
		switch {
		case inFlight && flight.stopped:
			stopped += wait
		case inFlight:
			wait = min(wait, flight.wait)
		case errors.Is(err, errNotFirst):
			tries++
		default:
			return nil, err
		}
		if tries > proofTries || stopped > stoppedLimit || !pause(ctx, wait) {
			return nil, &UnavailableError{Account: a, Reason: oauth.Clean(err.Error(), 300), RetryAfter: time.Second, Err: err}
		}
	}
}

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// renewOnce is the whole decision, made under a lease: others in other processes
// wait, and then find that it is done.
func (rf *refresher) renewOnce(ctx context.Context, a Account, srv config.Server, r renewal) (*Grant, error) {
	g, err := rf.grants.Load(ctx, a)
	if err != nil {
		return nil, err
	}
	if r.satisfiedBy(g) {
		rf.grants.cache.put(a, g)
		return g, nil
	}
	if err := rf.failures.mayAsk(ctx, a, srv); err != nil && !r.always {
		return nil, err
	}
	var out *Grant
	err = holdRefresh(ctx, rf.Store, a, func(ctx context.Context, l vault.Lease) (err error) {
		out, err = rf.renewUnderLease(ctx, a, srv, r, l)
		if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), vault.ErrFenced) {
			err = fmt.Errorf("%w: %w", errNotFirst, context.Cause(ctx))
		}
		return err
	})
	if err != nil {
		if errors.Is(err, vault.ErrUnavailable) && !errors.Is(err, oauth.ErrUnavailable) {
			err = &UnavailableError{Account: a, Reason: "the store is out of reach", RetryAfter: time.Second, Err: err}
		}
		return nil, err
	}
	rf.grants.cache.put(a, out)
	return out, nil
}

// holdRefresh runs f under the lease that keeps other processes from refreshing.
func holdRefresh(ctx context.Context, store vault.Store, a Account, f func(context.Context, vault.Lease) error) error {
	return vault.Hold(ctx, store, "refresh/"+a.Key(vault.KindGrant).String(), refreshLease, f)
}

// renewUnderLease looks again, and asks the server if there is still need to.
func (rf *refresher) renewUnderLease(ctx context.Context, a Account, srv config.Server, r renewal, l vault.Lease) (*Grant, error) {
	g, err := rf.grants.saved(ctx, a)
	if err != nil {
		return nil, err
	}
	if r.satisfiedBy(g) {
		return g, nil
	}
	if err := rf.failures.mayAsk(ctx, a, srv); err != nil && !r.always {
		return nil, err
	}
	if err := rf.sends.mayBeFirst(ctx, a, g); err != nil {
		return nil, err
	}
	// A refresh token can be spent once: look first whether its successor can be kept.
	if err := rf.Store.Ready(ctx, Room); err != nil {
		return nil, &UnavailableError{Account: a, Reason: "the store cannot be written, so the refresh token is not spent", RetryAfter: time.Second, Err: err}
	}
	// The lease may be lost while the server is asked; its answer counts anyway. That
	// it is held when the request leaves is proven then. A store that hangs must not
	// keep it permanently, though.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewLimit)
	defer cancel()
	return rf.ask(ctx, a, srv, g, l, r)
}

// satisfiedBy reports whether there is a grant that is good enough already.
func (r renewal) satisfiedBy(g *Grant) bool {
	return !r.always && g != nil && g.Ended == nil && g.Generation > r.stale
}

// ask gets new tokens from the authorization server and stores them.
func (rf *refresher) ask(ctx context.Context, a Account, srv config.Server, g *Grant, l vault.Lease, r renewal) (*Grant, error) {
	switch {
	case MachineFlow(srv) != "":
		rf.count.asked.Add(1)
		next, answer, err := rf.obtain(ctx, a, srv, r.challenge)
		if err != nil {
			return nil, rf.failures.record(ctx, a, srv, err)
		}
		return rf.keepAnswer(ctx, a, g, next, answer, l)
	case g == nil:
		return nil, needsLogin(a, "there is no login")
	case g.Ended != nil:
		return nil, needsLogin(a, "%s", g.Ended.Reason)
	case g.Refresh.IsZero():
		return nil, needsLogin(a, "the token is no longer good and there is no refresh token")
	}
	answer, err := rf.refresh(ctx, a, srv, g, l)
	if err != nil {
		defer rf.sends.clear(ctx, a)
	}
	switch {
	case errors.Is(err, errSuperseded):
		return rf.winner(ctx, a, g)
	case errors.Is(err, errNotFirst):
		return nil, err
	case oauth.RefusedWith(err, "invalid_grant"):
		return nil, rf.endGrant(ctx, a, g, l, err)
	case err != nil && answer != nil && !answer.Refresh.IsZero():
		rf.keepRotated(ctx, a, g, answer, l)
		return nil, rf.failures.record(ctx, a, srv, err)
	case err != nil:
		return nil, rf.failures.record(ctx, a, srv, err)
	}
	next := *g
	return rf.keepAnswer(ctx, a, g, &next, answer, l)
}

// errSuperseded: somebody else wrote the grant while the server was asked.
var errSuperseded = errors.New("the grant was changed meanwhile")

// refresh spends the refresh token. It asks a second time in two cases only: to make
// sure of an invalid_grant, and, soon, when the answer was lost: servers let the
// previous token be used once more for that.
func (rf *refresher) refresh(ctx context.Context, a Account, srv config.Server, g *Grant, l vault.Lease) (*oauth.TokenResponse, error) {
	b := rf.BoundsOf(ctx, srv)
	b.Ports = g.Bounds.Ports
	if g.Bounds.Port == "" {
		b.Port = "" // written by an older version, which compared no ports
	}
	w := rf.Client(b)
	defer w.Close()
	first := func(ctx context.Context) error { return rf.sends.proveFirst(ctx, a, g, l) }
	start, lost, refusals := time.Now(), error(nil), 0
	for {
		answer, err := rf.spend(ctx, w, srv, g, first)
		switch {
		case errors.Is(err, errNotFirst) && lost != nil:
			return nil, lost // the repeat was not sent
		case errors.Is(err, errNotFirst) && refusals > 0:
			return nil, &oauth.TokenError{Host: oauth.HostOf(g.TokenEndpoint), Reason: "the refusal cannot be confirmed: " + err.Error(), Err: err}
		case oauth.RefusedWith(err, "invalid_grant"):
			if refusals++; refusals == 2 {
				return nil, err
			}
			now, loadErr := rf.grants.Load(ctx, a)
			if loadErr != nil {
				return nil, &oauth.TokenError{Host: oauth.HostOf(g.TokenEndpoint), Reason: "the refusal cannot be confirmed while the store is out of reach", Err: loadErr}
			}
			if now == nil || now.Generation != g.Generation {
				return nil, errSuperseded
			}
		case oauth.AnswerLost(err) && lost == nil && time.Since(start) < lostWindow:
			lost = err
		default:
			return answer, err
		}
	}
}

// spend sends one refresh request, to the endpoint recorded at login.
func (rf *refresher) spend(ctx context.Context, w *oauth.Client, srv config.Server, g *Grant, first func(context.Context) error) (*oauth.TokenResponse, error) {
	rf.count.asked.Add(1)
	key, err := oauth.LoadDPoPKey(g.DPoP.Secret)
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh.Reveal()}}
	if g.Resource != "" {
		form.Set("resource", g.Resource)
	}
	answer, err := w.RequestToken(ctx, oauth.TokenRequest{Endpoint: g.TokenEndpoint, Form: form, Credentials: g.clientNow(srv), DPoP: key, BeforeSend: first})
	if err == nil {
		err = g.CheckBinding(answer)
	}
	return answer, err
}

// clientNow is the grant's client, with the secret that is configured now if it is a
// configured client: secrets are rotated.
func (g *Grant) clientNow(srv config.Server) oauth.Credentials {
	c, o := g.Client, oauth.SettingsOf(srv)
	if c.Source == oauth.SourceConfigured && o.ClientID == c.ID {
		if o.ClientSecret != "" {
			c.Secret = oauth.NewStoredSecret(o.ClientSecret)
		}
		if o.PrivateKey != "" {
			c.Key = oauth.NewStoredSecret(o.PrivateKey)
		}
	}
	return c
}

// keepAnswer makes new tokens durable, then lets everybody use them.
func (rf *refresher) keepAnswer(ctx context.Context, a Account, g, next *Grant, answer *oauth.TokenResponse, l vault.Lease) (*Grant, error) {
	next.Generation = 1
	var version int64
	if g != nil {
		next.Generation, version = g.Generation+1, g.Version
	}
	next.Take(answer)
	err := rf.write(ctx, a, next, version, l)
	if errors.Is(err, vault.ErrFenced) {
		err = rf.sends.keepLate(ctx, a, next, version)
	}
	switch {
	case errors.Is(err, vault.ErrConflict), errors.Is(err, vault.ErrFenced):
		return rf.winner(ctx, a, g)
	case err != nil:
		// All there is of the login is in this process now.
		rf.Log.Warn("a renewed login is only in memory", "account", a.String(), "error", err)
		rf.grants.unsaved.put(a, next, version)
	}
	rf.count.renewed.Add(1)
	rf.tokens.minted(next.Access.Secret, g != nil)
	rf.failures.clear(ctx, a)
	rf.tell(a, event.GrantRefreshed, next.Expires, "")
	return next, nil
}

// write stores a grant under the lease, trying again while the store is out of reach.
func (rf *refresher) write(ctx context.Context, a Account, g *Grant, version int64, l vault.Lease) error {
	data, err := g.Encode()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, saveLimit)
	defer cancel()
	return rf.persist(ctx, func(ctx context.Context) error {
		rec, err := rf.Store.PutFenced(ctx, a.Key(vault.KindGrant), data, version, l)
		if err == nil {
			g.Version = rec.Version
		}
		return err
	})
}

// winner returns what somebody newer wrote; ours is dropped.
func (rf *refresher) winner(ctx context.Context, a Account, g *Grant) (*Grant, error) {
	rf.count.superseded.Add(1)
	now, err := rf.grants.Load(ctx, a)
	switch {
	case err != nil:
		return nil, err
	case now == nil:
		return nil, needsLogin(a, "the login was removed meanwhile")
	case now.Ended != nil:
		return nil, needsLogin(a, "%s", now.Ended.Reason)
	case g == nil || now.Generation > g.Generation:
		return now, nil
	}
	return nil, &UnavailableError{Account: a, Reason: "another process is renewing it", RetryAfter: time.Second}
}

// endGrant writes down that the server has confirmed the end of a grant. The record
// stays, with the reason in it.
func (rf *refresher) endGrant(ctx context.Context, a Account, g *Grant, l vault.Lease, cause error) error {
	next := *g
	next.Generation++
	next.Ended = &Ending{At: time.Now(), Reason: fmt.Sprintf("the authorization server has ended the login (%v)", cause)}
	if err := rf.write(ctx, a, &next, g.Version, l); err != nil {
		if errors.Is(err, vault.ErrConflict) || errors.Is(err, vault.ErrFenced) {
			if _, err := rf.winner(ctx, a, g); err != nil {
				return err
			}
			return &UnavailableError{Account: a, Reason: "another process has renewed it", RetryAfter: 0}
		}
		return fmt.Errorf("write down the end of the login of %s: %w", a, err)
	}
	rf.count.ended.Add(1)
	rf.grants.cache.put(a, &next)
	rf.tell(a, event.GrantLost, time.Time{}, next.Ended.Reason)
	return needsLogin(a, "%s", next.Ended.Reason)
}

// keepRotated saves a new refresh token out of an answer that is no good otherwise.
func (rf *refresher) keepRotated(ctx context.Context, a Account, g *Grant, answer *oauth.TokenResponse, l vault.Lease) {
	next := *g
	next.Refresh = oauth.StoredSecret{Secret: answer.Refresh}
	if err := rf.write(ctx, a, &next, g.Version, l); err != nil {
		rf.Log.Warn("a rotated refresh token is only in memory", "account", a.String(), "error", err)
		rf.grants.unsaved.put(a, &next, g.Version)
	}
}
