package lifetime

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/ending"
)

// Why a request, a stream or a session ends with its credential.
var (
	ErrRevoked = errors.New("the token was revoked")
	ErrExpired = errors.New("the token has expired")
)

// tombstone is how long a revoked credential is refused although an authenticator may
// still accept it: longer than authn.TokenCacheTime.
const tombstone = 10 * time.Second

// Registry knows what has to end when a credential is revoked or expires: requests in
// flight, streams and suspended calls. The zero value is ready.
type Registry struct {
	mu      sync.Mutex // guards what follows
	uses    map[*Use]struct{}
	revoked map[string]time.Time // when, for as long as a tombstone lasts
}

// Lifetime is how long what a client opened may last: until the client's credential
// expires or is revoked. The zero Lifetime does not end.
type Lifetime struct {
	all        *Registry
	credential string
	expires    time.Time
}

// Use is something with a lifetime.
type Use struct {
	life  Lifetime
	what  interface{ End(cause error) }
	timer *time.Timer // nil when it does not expire
}

// EndFunc is a function that ends a use.
type EndFunc func(cause error)

// End calls the function.
func (f EndFunc) End(cause error) { f(cause) }

// Hold calls end, from any goroutine, if the lifetime is over before Done is called. Nil:
// the lifetime does not end.
func (l Lifetime) Hold(end EndFunc) *Use {
	if l.all == nil {
		return nil
	}
	u := &Use{}
	l.begin(u, end)
	return u
}

// begin registers something whose End is called, from any goroutine, if its lifetime
// is over before u.done is called.
func (l Lifetime) begin(u *Use, what interface{ End(cause error) }) {
	u.life, u.what = l, what
	l.all.mu.Lock()
	_, gone := l.all.revoked[l.credential]
	if !gone {
		if l.all.uses == nil {
			l.all.uses = map[*Use]struct{}{}
		}
		l.all.uses[u] = struct{}{}
	}
	l.all.mu.Unlock()
	if gone {
		what.End(ErrRevoked)
		return
	}
	if !l.expires.IsZero() {
		u.timer = time.AfterFunc(time.Until(l.expires), func() { what.End(ErrExpired) })
	}
}

// Done takes the use off the registry: it has ended by itself. It does nothing when u is
// nil.
func (u *Use) Done() {
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

// Revoke ends all that a credential is used for.
func (c *Registry) Revoke(credential string) {
	now := time.Now()
	var over []*Use
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
		u.what.End(ErrRevoked)
	}
}

// AddTo adds the credentials in use to a set.
func (c *Registry) AddTo(set map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for u := range c.uses {
		set[u.life.credential] = true
	}
}

// Context is the context of a request: it ends with the client's credential, too.
type Context struct {
	ending.Context
	use Use
}

type lifetimeKey struct{}

// Value implements [context.Context].
func (b *Context) Value(key any) any {
	if key == (lifetimeKey{}) {
		return &b.use.life
	}
	return b.Context.Value(key)
}

// Endless reports whether nothing ends because of this lifetime.
func (l Lifetime) Endless() bool { return l.all == nil }

// Of is the lifetime of what the request with this context opens.
func Of(ctx context.Context) Lifetime {
	if l, ok := ctx.Value(lifetimeKey{}).(*Lifetime); ok {
		return *l
	}
	return Lifetime{}
}

// Bind returns a context that ends with ctx or with the credential, until Release is called.
func (c *Registry) Bind(ctx context.Context, credential string, expires time.Time) *Context {
	b := &Context{Context: ending.Under(ctx)}
	Lifetime{c, credential, expires}.begin(&b.use, b)
	return b
}

// Release says that the request has ended. It does nothing when b is nil.
func (b *Context) Release() {
	if b == nil {
		return
	}
	b.use.Done()
	b.End(nil)
}

// Ended says why a request ended with its credential, nil when it did not.
func Ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrRevoked) || errors.Is(cause, ErrExpired) {
		return cause
	}
	return nil
}

// Refuse answers a request whose credential ended meanwhile.
func Refuse(w http.ResponseWriter, cause error) {
	w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="`+cause.Error()+`"`)
	http.Error(w, cause.Error(), http.StatusUnauthorized)
}
