package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/usher-mcp/usher/surface"
)

// Identity is who sent a request.
type Identity struct {
	// Principal is whose accounts, pins and private answers are used.
	Principal string
	// Servers and Tools bound what may be seen, see surface.Agent. Empty: all.
	Servers, Tools []string
}

// Authenticator says who sent a request. The error is a *RefusedError when the
// request itself is to blame; any other error is a failure of our own.
type Authenticator interface {
	Authenticate(ctx context.Context, r *http.Request) (Identity, error)
}

// RefusedError says why a request is not let in, and how to ask.
type RefusedError struct {
	Status    int    // 401, or 403 for a credential that is too narrow
	Challenge string // WWW-Authenticate
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
		w.Header().Set("WWW-Authenticate", no.Challenge)
		http.Error(w, no.Reason, no.Status)
	default:
		g.opt.Log.Error("a request could not be authenticated", "error", err)
		http.Error(w, "authentication is not possible at the moment", http.StatusServiceUnavailable)
	}
	return Identity{}, false
}

// agent is what a view is told about a request of this identity.
func (id Identity) agent() surface.Agent {
	return surface.Agent{Principal: id.Principal, Servers: id.Servers, Tools: id.Tools}
}
