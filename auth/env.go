package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/vault"
)

// env is what the parts of an Engine share: the store, the options, the lifetime, and
// what this process has learned about tokens.
type env struct {
	store    vault.Store
	opt      Options
	log      *slog.Logger
	flights  singleflight.Group
	tokens   tokenLog
	nonces   oauth.Nonces
	verdicts verdictLog
	count    counters
	seed     string // makes this process refresh at other moments than its neighbours, and names it in notes
	clock    vault.Clock

	life context.Context // ends with Close
	stop context.CancelFunc

	mu     sync.Mutex // guards closed, and adding to work
	closed bool
	work   sync.WaitGroup
}

func newEnv(store vault.Store, options *Options) *env {
	v := &env{store: store, seed: rand.Text(), clock: vault.Now}
	if options != nil {
		v.opt = *options
	}
	if v.opt.ClientName == "" {
		v.opt.ClientName = "usher"
	}
	v.log = v.opt.Log
	if v.log == nil {
		v.log = slog.New(slog.DiscardHandler)
	}
	v.life, v.stop = context.WithCancel(context.Background())
	return v
}

// spawn runs f in a goroutine that Close waits for; false after Close.
func (v *env) spawn(f func()) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return false
	}
	v.work.Go(f)
	return true
}

// enter is spawn for a goroutine that runs already; it ends with work.Done.
func (v *env) enter() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return false
	}
	v.work.Add(1)
	return true
}

// tell publishes what happened to a grant.
func (v *env) tell(a Account, change string, expires time.Time, reason string) {
	switch change {
	case event.GrantStored:
		v.log.Info("logged in", a.attrs()...)
	case event.GrantLost:
		v.log.Warn("the login was lost", append(a.attrs(), "reason", oauth.Clean(reason, loggedReason))...)
	case event.GrantRemoved:
		v.log.Info("logged out", a.attrs()...)
	}
	if v.opt.Events == nil {
		return
	}
	h := a.header()
	h.At = time.Now()
	v.opt.Events.Publish(event.GrantChanged{Header: h, Change: change, Expires: expires, Reason: reason})
}

// loginFailed logs why a login did not end well. There is one line for each pending
// login, or for each answer that came from the wrong server.
func (v *env) loginFailed(a Account, err error) {
	what := "the login failed"
	if errors.Is(err, ErrDenied) {
		what = "the login was denied"
	}
	v.log.Warn(what, append(a.attrs(), "reason", oauth.Clean(err.Error(), loggedReason))...)
}

// boundsOf are the bounds of logins to a server.
func (v *env) boundsOf(ctx context.Context, srv config.Server) oauth.Bounds {
	b := oauth.BoundsOf(srv)
	b.Public = v.opt.PublicOnly != nil && v.opt.PublicOnly(ctx, srv)
	if v.opt.DiscoveryHosts != nil {
		b.Hosts = v.opt.DiscoveryHosts()
	}
	return b
}

// client returns a client for requests within bounds. The caller closes it.
func (v *env) client(b oauth.Bounds) *oauth.Client {
	return oauth.NewClient(b, oauth.ClientOptions{RoundTripper: v.opt.RoundTripper, TLS: v.opt.TLS, Nonces: &v.nonces})
}

// detached runs work to its end whatever the caller does meanwhile: an answer of a
// token endpoint must be stored even if nobody waits for it any more. Work gets
// the caller's values, limit for its time, and survives Close.
func detached[T any](ctx context.Context, v *env, limit time.Duration, work func(context.Context) (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	ok := v.spawn(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		v, err := work(ctx)
		done <- result{v, err}
	})
	var none T
	if !ok {
		return none, ErrClosed
	}
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// loggedReason is how much of a reason is logged: some of it may come from a server.
const loggedReason = 300
