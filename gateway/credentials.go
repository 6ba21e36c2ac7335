package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/internal/ending"
)

// Why a request, a stream or a session ends with its credential.
var (
	errTokenRevoked = errors.New("the token was revoked")
	errTokenExpired = errors.New("the token has expired")
)

// tombstone is how long a revoked credential is refused although an authenticator
// may still accept it: longer than one of them keeps a token without asking.
const tombstone = 2 * authn.TokenCacheTime

// credentials knows what has to end when a credential is revoked or expires:
// requests in flight, streams and suspended calls. Sessions are found by theirs.
type credentials struct {
	mu      sync.Mutex // guards what follows
	uses    map[*use]struct{}
	revoked map[string]time.Time // when, for as long as a tombstone lasts
}

// lifetime is how long that may go on which a client opened: until its credential
// expires or is revoked. The zero lifetime does not end.
type lifetime struct {
	all        *credentials
	credential string
	expires    time.Time
}

// use is something with a lifetime.
type use struct {
	life  lifetime
	what  interface{ End(cause error) }
	timer *time.Timer // nil when it does not expire
}

// endFunc is what a use is of, where a function ends it.
type endFunc func(cause error)

// End calls the function.
func (f endFunc) End(cause error) { f(cause) }

// hold is begin for what has no place of its own for a use. Nil: it does not end.
func (l lifetime) hold(end endFunc) *use {
	if l.all == nil {
		return nil
	}
	u := &use{}
	l.begin(u, end)
	return u
}

// begin registers something whose End is called, from any goroutine, if its lifetime
// is over before u.done is called.
func (l lifetime) begin(u *use, what interface{ End(cause error) }) {
	u.life, u.what = l, what
	l.all.mu.Lock()
	_, gone := l.all.revoked[l.credential]
	if !gone {
		if l.all.uses == nil {
			l.all.uses = map[*use]struct{}{}
		}
		l.all.uses[u] = struct{}{}
	}
	l.all.mu.Unlock()
	if gone {
		what.End(errTokenRevoked)
		return
	}
	if !l.expires.IsZero() {
		u.timer = time.AfterFunc(time.Until(l.expires), func() { what.End(errTokenExpired) })
	}
}

// done takes it off: it has ended by itself.
func (u *use) done() {
	if u == nil {
		return
	}
	if u.timer != nil {
		u.timer.Stop()
	}
	u.life.all.mu.Lock()
	defer u.life.all.mu.Unlock()
	delete(u.life.all.uses, u)
}

// revoke ends all that a credential is used for.
func (c *credentials) revoke(credential string) {
	now := time.Now()
	var over []*use
	c.mu.Lock()
	for id, at := range c.revoked {
		if now.Sub(at) > tombstone {
			delete(c.revoked, id)
		}
	}
	if c.revoked == nil {
		c.revoked = map[string]time.Time{}
	}
	c.revoked[credential] = now
	for u := range c.uses {
		if u.life.credential == credential {
			over = append(over, u)
		}
	}
	c.mu.Unlock()
	for _, u := range over {
		u.what.End(errTokenRevoked)
	}
}

// addTo adds the credentials in use to a set.
func (c *credentials) addTo(set map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for u := range c.uses {
		set[u.life.credential] = true
	}
}

// bound is the context of a request: it ends with the client's credential, too.
type bound struct {
	ending.Context
	use use
}

type lifetimeKey struct{}

// Value implements [context.Context].
func (b *bound) Value(key any) any {
	if key == (lifetimeKey{}) {
		return &b.use.life
	}
	return b.Context.Value(key)
}

// lifetimeOf is the lifetime of what the request with this context opens.
func lifetimeOf(ctx context.Context) lifetime {
	if l, ok := ctx.Value(lifetimeKey{}).(*lifetime); ok {
		return *l
	}
	return lifetime{}
}

// bind makes a request end with the credential it came with, until done is called.
// Nil: it came with none.
func (g *Gateway) bind(r *http.Request, id authn.Identity) (*http.Request, *bound) {
	if id.Credential == "" {
		return r, nil
	}
	g.watch()
	b := &bound{Context: ending.Under(r.Context())}
	lifetime{&g.credentials, id.Credential, id.Expires}.begin(&b.use, b)
	return r.WithContext(b), b
}

// done says that the request has ended.
func (b *bound) done() {
	if b == nil {
		return
	}
	b.use.done()
	b.End(nil)
}

// tokenEnded says why a request ended with its credential, nil when it did not.
func tokenEnded(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, errTokenRevoked) || errors.Is(cause, errTokenExpired) {
		return cause
	}
	return nil
}

// refuseEnded answers a request whose credential ended meanwhile.
func refuseEnded(w http.ResponseWriter, cause error) {
	w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="`+cause.Error()+`"`)
	http.Error(w, cause.Error(), http.StatusUnauthorized)
}

// watch starts the one goroutine that hears of revocations.
func (g *Gateway) watch() {
	w, ok := g.opt.Auth.(authn.Watcher)
	if !ok || g.watching.Load() || !g.watching.CompareAndSwap(false, true) {
		return
	}
	g.spawn(func() { w.Watch(g.life, g.liveCredentials, g.revoke) })
}

// liveCredentials are those that something depends on.
func (g *Gateway) liveCredentials() []string {
	set := map[string]bool{}
	g.credentials.addTo(set)
	g.sessions.addTo(set)
	out := make([]string, 0, len(set))
	for id := range set {
		out = append(out, id)
	}
	return out
}

// revoke ends all that a credential was used to open.
func (g *Gateway) revoke(credential string) {
	g.credentials.revoke(credential)
	g.sessions.endCredential(credential)
}
