package auth

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"

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

// Engine logs accounts in and keeps them logged in. All methods may be called from any
// goroutine. Several engines, in several processes, may share one store.
type Engine struct {
	*env

	grants    *grantStore       // stored logins
	steps     *stepUps          // what servers want beyond what they were given
	clients   *registrar        // client registrations
	failures  *failureLog       // failed refreshes
	sends     *sendLog          // refresh tokens that are being sent
	preparer  *preparer         // discovery and scopes of a login
	refresher *refresher        // new tokens for a stored login
	refusals  *refusals         // requests that a server refused
	pendings  *pendingLogins    // logins that wait for a user
	callbacks *callbackListener // where browsers come back to
	completer *completer        // callbacks
	devices   *deviceLogins     // logins with a device code
	statuses  *statuses
	logouts   *logouts
}

// New returns an engine that keeps everything in store, which stays the caller's.
func New(store vault.Store, options *Options) *Engine {
	v := newEnv(store, options)
	e := &Engine{env: v, steps: &stepUps{env: v}}
	e.grants = &grantStore{env: v}
	e.clients = &registrar{env: v, grants: e.grants}
	e.failures = &failureLog{env: v, clients: e.clients}
	e.sends = &sendLog{env: v, self: thisSender, stateOf: probeSender}
	e.preparer = &preparer{env: v, grants: e.grants, steps: e.steps}
	e.refresher = &refresher{env: v, grants: e.grants, failures: e.failures, sends: e.sends, preparer: e.preparer}
	e.refusals = &refusals{env: v, grants: e.grants, steps: e.steps, refresher: e.refresher}
	e.pendings = &pendingLogins{env: v, grants: e.grants}
	e.callbacks = &callbackListener{env: v, pendings: e.pendings, look: listenerLook}
	e.completer = &completer{
		env: v, grants: e.grants, steps: e.steps, clients: e.clients, failures: e.failures, pendings: e.pendings,
		slots: make(chan struct{}, limit.CallbackRequests),
	}
	e.devices = &deviceLogins{env: v, clients: e.clients, pendings: e.pendings, completer: e.completer}
	e.statuses = &statuses{env: v, failures: e.failures, steps: e.steps}
	e.logouts = &logouts{env: v, grants: e.grants, clients: e.clients}
	server := &e.callbacks.server
	server.Receive = func(w http.ResponseWriter, r *http.Request) { e.completer.serve(w, r, "") }
	server.Spawn, server.OnOpen, server.Linger = v.spawn, e.callbacks.closeWhenIdle, listenerLinger
	return e
}

// Close ends waiting, polling and listening, and waits for requests to
// authorization servers that are in flight: an answer may be a new refresh token.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.callbacks.server.Close()
	e.work.Wait()
	return nil
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
