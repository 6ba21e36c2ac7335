package grants

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/vault"
)

// Options configure a login engine. The zero value works.
type Options struct {
	// ClientName is the name a provider shows on its consent page. Default "usher".
	ClientName string
	// Events hears of grants that were stored, refreshed, lost or removed.
	Events *event.Bus[event.Event]
	// Log hears warnings. Default: discard.
	Log *slog.Logger
	// TLS is used for all requests to authorization servers. Default: the system's.
	TLS *tls.Config
	// DiscoveryHosts are globs over the hosts that logins may reach, beside those that
	// the definition of a server names. Nil, or an empty list: all that are public.
	DiscoveryHosts func() []string
	// PublicOnly reports whether logins to a server must not reach private addresses,
	// whatever its definition says. Nil: none is restricted in this way.
	PublicOnly func(context.Context, config.Server) bool
	// RoundTripper carries the engine's own requests in place of the network, for
	// tests and for programs with a network of their own. The guard against
	// private addresses is then theirs. Default: the guarded network.
	RoundTripper http.RoundTripper
}

// Env is what the parts of a login engine share: the store, the options, the lifetime, and
// what this process has learned about tokens.
type Env struct {
	Store   vault.Store
	Options Options
	Log     *slog.Logger    // never nil
	Clock   vault.Clock     // tests replace it
	Life    context.Context // ends with ShutDown

	stop     context.CancelFunc
	flights  singleflight.Group
	tokens   tokenLog
	nonces   oauth.Nonces
	verdicts verdictLog
	count    counters
	seed     string // makes this process refresh at other moments than its neighbours, and names it in notes

	mu     sync.Mutex // guards closed, and adding to work
	closed bool
	work   sync.WaitGroup
}

// NewEnv returns what the parts of one engine share. The store stays the caller's.
func NewEnv(store vault.Store, options *Options) *Env {
	v := &Env{Store: store, seed: rand.Text(), Clock: vault.Now}
	if options != nil {
		v.Options = *options
	}
	if v.Options.ClientName == "" {
		v.Options.ClientName = "usher"
	}
	v.Log = v.Options.Log
	if v.Log == nil {
		v.Log = slog.New(slog.DiscardHandler)
	}
	v.Life, v.stop = context.WithCancel(context.Background())
	return v
}

// Spawn runs f in a goroutine that Wait waits for; false after ShutDown.
func (v *Env) Spawn(f func()) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return false
	}
	v.work.Go(f)
	return true
}

// enter is Spawn for a goroutine that runs already; it ends with work.Done.
func (v *Env) enter() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return false
	}
	v.work.Add(1)
	return true
}

// ShutDown ends waiting, and makes Spawn and enter fail from now on.
func (v *Env) ShutDown() {
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	v.stop()
}

// Wait waits for what Spawn and enter began.
func (v *Env) Wait() { v.work.Wait() }

// tell publishes what happened to a grant.
func (v *Env) tell(a Account, change string, expires time.Time, reason string) {
	switch change {
	case event.GrantStored:
		v.Log.Info("logged in", a.LogAttrs()...)
	case event.GrantLost:
		v.Log.Warn("the login was lost", append(a.LogAttrs(), "reason", oauth.Clean(reason, loggedReason))...)
	case event.GrantRemoved:
		v.Log.Info("logged out", a.LogAttrs()...)
	}
	if v.Options.Events == nil {
		return
	}
	h := a.header()
	h.At = time.Now()
	v.Options.Events.Publish(event.GrantChanged{Header: h, Change: change, Expires: expires, Reason: reason})
}

// BoundsOf returns the bounds of logins to a server.
func (v *Env) BoundsOf(ctx context.Context, srv config.Server) oauth.Bounds {
	b := oauth.BoundsOf(srv)
	b.Public = v.Options.PublicOnly != nil && v.Options.PublicOnly(ctx, srv)
	if v.Options.DiscoveryHosts != nil {
		b.Hosts = v.Options.DiscoveryHosts()
	}
	return b
}

// Client returns a client for requests within bounds. The caller closes it.
func (v *Env) Client(b oauth.Bounds) *oauth.Client {
	return oauth.NewClient(b, oauth.ClientOptions{RoundTripper: v.Options.RoundTripper, TLS: v.Options.TLS, Nonces: &v.nonces})
}

// Detached runs work to its end whatever the caller does meanwhile: an answer of a
// token endpoint must be stored even if nobody waits for it any more. Work gets
// the caller's values, limit for its time, and survives ShutDown.
func Detached[T any](ctx context.Context, v *Env, limit time.Duration, work func(context.Context) (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	ok := v.Spawn(func() {
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

// persist tries hard to write something that cannot be had again. A store that does
// not answer in time is one that cannot be reached.
func (v *Env) persist(ctx context.Context, write func(context.Context) error) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		try, cancel := context.WithTimeout(ctx, tryLimit)
		err := write(try)
		if err != nil && try.Err() != nil {
			err = fmt.Errorf("%w: %w", vault.ErrUnavailable, err)
		}
		cancel()
		if err == nil || !errors.Is(err, vault.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		v.Log.Warn("a login cannot be stored yet", "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
