package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/surface"
)

// Identity is who sent a request, with what, and what that covers.
type Identity struct {
	// Principal is whose accounts, pins and private answers are used.
	Principal string
	// Credential names what the client authenticated with: the same for each request
	// with the same token, and for each access token that one client gets for the
	// same scope by refreshing. What the client opens (sessions, streams, suspended
	// calls) can be used with the same credential only, and ends when it is revoked.
	// Empty: there is none, everybody of the principal and scope is the same client.
	Credential string
	// Expires is when the token of this request ends, and with it the streams and
	// calls that it opened. Zero: never. Without a Credential it has no effect.
	Expires time.Time
	// Refreshable: the client can get a newer token with the same Credential, so a
	// session waits for it a while after Expires.
	Refreshable bool
	// Servers and Tools are what may be seen, see surface.Agent. Empty: all.
	Servers, Tools []string
	// Profiles are the only endpoints that may be used, by their exact names. Empty:
	// all endpoints.
	Profiles []string
}

// Scoped reports whether the identity may see a part only of what there is.
func (id Identity) Scoped() bool {
	return len(id.Servers) > 0 || len(id.Tools) > 0 || len(id.Profiles) > 0
}

// same reports whether other is the same client with the same scope: it may use what
// this one opened.
func (id Identity) same(other Identity) bool {
	return id.Principal == other.Principal && id.Credential == other.Credential && slices.Equal(id.Servers, other.Servers) &&
		slices.Equal(id.Tools, other.Tools) && slices.Equal(id.Profiles, other.Profiles)
}

// Authenticator says who sent a request. The error is a *RefusedError when the
// request itself is to blame; any other error is a failure of our own.
type Authenticator interface {
	Authenticate(ctx context.Context, r *http.Request) (Identity, error)
}

// RefusedError says why a request is not let in, and how to ask.
type RefusedError struct {
	Status    int    // 401 (the default), or 403 for a credential that is too narrow
	Challenge string // WWW-Authenticate; default Bearer
	Reason    string
}

func (e *RefusedError) Error() string { return e.Reason }

// localPrincipal is the user of this machine; it is surface's default.
const localPrincipal = "local"

// AnyOf lets in whom one of several authenticators knows. The refusal of the last
// one stands, so the one with the richest challenge goes there.
type AnyOf []Authenticator

// Authenticate implements [Authenticator].
func (a AnyOf) Authenticate(ctx context.Context, r *http.Request) (Identity, error) {
	refused := error(&RefusedError{Status: http.StatusUnauthorized, Challenge: "Bearer", Reason: "nobody can be authenticated"})
	for _, auth := range a {
		id, err := auth.Authenticate(ctx, r)
		var no *RefusedError
		if err == nil || !errors.As(err, &no) {
			return id, err
		}
		refused = err
		if no.Status == http.StatusForbidden {
			break // it is known, and may not
		}
	}
	return Identity{}, refused
}

// Watch implements [Watcher].
func (a AnyOf) Watch(ctx context.Context, live func() []string, revoked func(credential string)) {
	var wg sync.WaitGroup
	for _, auth := range a {
		if w, ok := auth.(Watcher); ok {
			wg.Go(func() { w.Watch(ctx, live, revoked) })
		}
	}
	wg.Wait()
}

// hostsOf are the names under which agents reach us, as far as an authenticator
// knows.
func hostsOf(a Authenticator) []string {
	switch a := a.(type) {
	case *OAuth:
		return []string{a.host()}
	case AnyOf:
		var all []string
		for _, one := range a {
			all = append(all, hostsOf(one)...)
		}
		return all
	}
	return nil
}

// metadata returns the protected resource metadata of a path, if one of them has it.
func (a AnyOf) metadata(path string) ([]byte, bool) {
	for _, auth := range a {
		if m, ok := auth.(interface{ metadata(string) ([]byte, bool) }); ok {
			if doc, ok := m.metadata(path); ok {
				return doc, true
			}
		}
	}
	return nil, false
}

// bearer returns the token of a request. A token in the query is none: it ends up
// in logs.
func bearer(r *http.Request) (string, bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// identify says who sent a request, or answers it.
func (g *Gateway) identify(w http.ResponseWriter, r *http.Request) (Identity, bool) {
	id, ok := g.whoSent(w, r)
	if c := connOf(r.Context()); ok && c != nil && !c.known.Load() {
		c.table.authenticated(c, id.Principal)
	}
	return id, ok
}

func (g *Gateway) whoSent(w http.ResponseWriter, r *http.Request) (Identity, bool) {
	if g.opt.Auth == nil {
		return Identity{Principal: localPrincipal}, true
	}
	id, err := g.opt.Auth.Authenticate(r.Context(), r)
	var no *RefusedError
	switch {
	case err == nil && id.Principal != "":
		return id, true
	case errors.As(err, &no):
		g.count.refused.Add(1)
		w.Header().Set("WWW-Authenticate", cmp.Or(no.Challenge, "Bearer"))
		http.Error(w, no.Reason, cmp.Or(no.Status, http.StatusUnauthorized))
	default:
		g.opt.Log.Error("a request could not be authenticated", "error", err)
		http.Error(w, "authentication is not possible at the moment", http.StatusServiceUnavailable)
	}
	return Identity{}, false
}

// owner names who may use what a client opened, for authenticated data: the same
// principal with the same credential and scope.
func owner(a surface.Agent) string {
	return fmt.Sprintf("%q %q %q %q", a.Principal, a.Credential, a.Servers, a.Tools)
}

// agent is what a view is told about a request of this identity.
func (id Identity) agent() surface.Agent {
	return surface.Agent{
		Principal: id.Principal, Credential: id.Credential, Expires: id.Expires, Servers: id.Servers, Tools: id.Tools,
	}
}
