package auth

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/usher-mcp/usher/auth/loopback"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// Options steer an Engine. The zero value works.
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

// Engine logs accounts in and keeps them so. All methods may be called from any
// goroutine. Several engines, in several processes, may share one store.
type Engine struct {
	store        vault.Store
	opt          Options
	log          *slog.Logger
	flights      singleflight.Group
	tokens       tokenBook
	nonces       oauth.Nonces
	grants       grantCache
	stocks       stockBook
	listener     loopback.Server
	listenerLook time.Duration
	waiting      waitBook
	polls        pollBook
	answers      chan struct{} // full while as many answers of browsers as may be are taken in
	verdicts     verdictBook
	unsaved      unsavedBook
	count        counters
	seed         string // makes this process renew at other moments than its neighbours, and names it in notes
	self         func() sender
	stateOf      func(sender) senderState
	sendings     vault.Sightings // of the notes of other processes
	clock        vault.Clock

	life context.Context // ends with Close
	stop context.CancelFunc

	mu     sync.Mutex // guards closed, and adding to work
	closed bool
	work   sync.WaitGroup
}

// New returns an engine that keeps everything in store, which stays the caller's.
func New(store vault.Store, options *Options) *Engine {
	e := &Engine{
		store: store, seed: rand.Text(), answers: make(chan struct{}, limit.CallbackRequests),
		self: thisSender, stateOf: probeSender, clock: vault.Now,
	}
	if options != nil {
		e.opt = *options
	}
	if e.opt.ClientName == "" {
		e.opt.ClientName = "usher"
	}
	e.log = e.opt.Log
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.life, e.stop = context.WithCancel(context.Background())
	e.listener.Receive = func(w http.ResponseWriter, r *http.Request) { e.callback(w, r, "") }
	e.listener.Spawn = e.spawn
	e.listener.OnOpen, e.listener.Linger, e.listenerLook = e.closeListenerWhenIdle, listenerLinger, listenerLook
	return e
}

// Close ends waiting, polling and listening, and waits for requests to
// authorization servers that are under way: their answers may be worth a login.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.listener.Close()
	e.work.Wait()
	return nil
}

// spawn runs f in a goroutine that Close waits for; false after Close.
func (e *Engine) spawn(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.work.Go(f)
	return true
}

// enter is spawn for a goroutine that runs already; it ends with work.Done.
func (e *Engine) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.work.Add(1)
	return true
}

// detached runs work to its end whatever the caller does meanwhile: an answer of a
// token endpoint must be stored even if nobody waits for it any more. Work gets
// the caller's values, limit for its time, and survives Close.
func detached[T any](ctx context.Context, e *Engine, limit time.Duration, work func(context.Context) (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	ok := e.spawn(func() {
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

// tell publishes what happened to a grant.
func (e *Engine) tell(a Account, change string, expires time.Time, reason string) {
	switch change {
	case event.GrantStored:
		e.log.Info("logged in", a.attrs()...)
	case event.GrantLost:
		e.log.Warn("the login was lost", append(a.attrs(), "reason", oauth.Clean(reason, loggedReason))...)
	case event.GrantRemoved:
		e.log.Info("logged out", a.attrs()...)
	}
	if e.opt.Events == nil {
		return
	}
	h := a.header()
	h.At = time.Now()
	e.opt.Events.Publish(event.GrantChanged{Header: h, Change: change, Expires: expires, Reason: reason})
}

// loggedReason is how much of a reason is logged: some of it may come from a server.
const loggedReason = 300

// loginFailed logs why a login did not end well. There is one line for each pending
// login, or for each answer that came from the wrong server.
func (e *Engine) loginFailed(a Account, err error) {
	what := "the login failed"
	if errors.Is(err, ErrDenied) {
		what = "the login was denied"
	}
	e.log.Warn(what, append(a.attrs(), "reason", oauth.Clean(err.Error(), loggedReason))...)
}

// attrs name the account in a log line.
func (a Account) attrs() []any {
	out := []any{"server", a.Server}
	if a.Label != "" {
		out = append(out, "account", a.Label)
	}
	if a.principal() != vault.Local {
		out = append(out, "principal", a.principal())
	}
	return out
}

// boundsOf are the bounds of logins to a server.
func (e *Engine) boundsOf(ctx context.Context, srv config.Server) oauth.Bounds {
	b := oauth.BoundsOf(srv)
	b.Public = e.opt.PublicOnly != nil && e.opt.PublicOnly(ctx, srv)
	if e.opt.DiscoveryHosts != nil {
		b.Hosts = e.opt.DiscoveryHosts()
	}
	return b
}

// web returns a client for requests within bounds. The caller closes it.
func (e *Engine) web(b oauth.Bounds) *oauth.Client {
	return oauth.NewClient(b, oauth.ClientOptions{RoundTripper: e.opt.RoundTripper, TLS: e.opt.TLS, Nonces: &e.nonces})
}
