package auth

import (
	"context"
	"net/http"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// Engine logs accounts in and keeps them logged in. All methods may be called from any
// goroutine. Several engines, in several processes, may share one store.
type Engine struct {
	env *grants.Env

	grants    *grants.Manager   // stored logins
	clients   *registrar        // client registrations
	preparer  *preparer         // discovery and scopes of a login
	pendings  *pendingLogins    // logins that wait for a user
	callbacks *callbackListener // where browsers come back to
	completer *completer        // callbacks
	devices   *deviceLogins     // logins with a device code
	logouts   *logouts
}

// New returns an engine that keeps everything in store, which stays the caller's.
func New(store vault.Store, options *Options) *Engine {
	v := grants.NewEnv(store, options)
	e := &Engine{env: v}
	e.grants = grants.New(v, grants.Hooks{
		Obtain: func(ctx context.Context, a Account, srv config.Server, c *Challenge) (*grants.Grant, *oauth.TokenResponse, error) {
			return e.preparer.obtain(ctx, a, srv, c)
		},
		ForgetClient: func(ctx context.Context, a Account) { e.clients.forgetOf(ctx, a) },
	})
	e.clients = &registrar{Env: v, grants: e.grants.Grants}
	e.preparer = &preparer{Env: v, grants: e.grants.Grants, steps: e.grants.Steps}
	e.pendings = &pendingLogins{Env: v, grants: e.grants.Grants}
	e.callbacks = &callbackListener{Env: v, pendings: e.pendings, look: listenerLook}
	e.completer = &completer{
		Env: v, grants: e.grants, clients: e.clients, pendings: e.pendings,
		slots: make(chan struct{}, limit.CallbackRequests),
	}
	e.devices = &deviceLogins{Env: v, clients: e.clients, pendings: e.pendings, completer: e.completer}
	e.logouts = &logouts{Env: v, grants: e.grants, clients: e.clients}
	server := &e.callbacks.server
	server.Receive = func(w http.ResponseWriter, r *http.Request) { e.completer.serve(w, r, "") }
	server.Spawn, server.OnOpen, server.Linger = v.Spawn, e.callbacks.closeWhenIdle, listenerLinger
	return e
}

// Close ends waiting, polling and listening, and waits for requests to
// authorization servers that are in flight: an answer may be a new refresh token.
func (e *Engine) Close() error {
	e.env.ShutDown()
	e.callbacks.server.Close()
	e.env.Wait()
	return nil
}

// Authorize puts the account's credential on a request to the server, refreshing it
// first when it is due. It does nothing when there is no login: the server may not
// want one, and says so if it does. It also leaves a configured Authorization header
// alone. When only a user can help, the error is a [*NeedsLoginError].
//
// srv is the server's definition with its placeholders filled in.
func (e *Engine) Authorize(ctx context.Context, a Account, srv *config.Server, req *http.Request) error {
	return e.grants.Authorize(ctx, a, srv, req)
}

// Refused takes in that the server refused a request. Nil means that one more try is
// worth it: there are newer tokens, or there is one to be had without a user.
// Otherwise the error says what is needed: [*NeedsLoginError], [*UnavailableError]
// when trying later is right, or [ErrStepUp] when asking for more permission has
// been tried often enough.
func (e *Engine) Refused(ctx context.Context, a Account, srv config.Server, c Challenge) error {
	return e.grants.Refused(ctx, a, srv, c)
}

// Transport watches the requests that [Engine.Authorize] put credentials on, so that
// a refusal is attributed to the token it met and not to a newer one, and so that DPoP
// nonces are learned. It changes nothing. Base carries the requests; nil means
// http.DefaultTransport. Without it [Engine.Refused] goes by what it can guess.
func (e *Engine) Transport(base http.RoundTripper) http.RoundTripper { return e.grants.Transport(base) }

// Has names the login that an account has: the number is another one after every login
// and every refresh, and 0 when there is none that could be used. Calling it before a
// request saves that request the read.
func (e *Engine) Has(ctx context.Context, a Account) int64 { return e.grants.Has(ctx, a) }

// Stats returns the counts so far.
func (e *Engine) Stats() Stats { return e.grants.Stats() }
