package authn

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
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
func (id Identity) Same(other Identity) bool {
	return id.Principal == other.Principal && id.Credential == other.Credential && slices.Equal(id.Servers, other.Servers) &&
		slices.Equal(id.Tools, other.Tools) && slices.Equal(id.Profiles, other.Profiles)
}

// Authenticator says who sent a request. The error is a *RefusedError when the
// request itself is to blame; any other error is a failure of our own.
type Authenticator interface {
	Authenticate(ctx context.Context, r *http.Request) (Identity, error)
}

// Watcher is an [Authenticator] whose credentials can be revoked.
type Watcher interface {
	Authenticator
	// Watch calls revoked with each credential that is revoked, by this process or
	// another one, until ctx ends. It must notice within a second. live returns the
	// credentials that are in use; the others need not be watched.
	Watch(ctx context.Context, live func() []string, revoked func(credential string))
}

// Describer is an [Authenticator] that publishes protected resource metadata (RFC 9728).
type Describer interface {
	// Metadata returns the document for the endpoint at path, "" for the gateway as a
	// whole. False: served says that there is no such endpoint.
	Metadata(path string, served func(path string) bool) ([]byte, bool)
}

// RefusedError says why a request is refused, and how to authenticate.
type RefusedError struct {
	Status    int    // 401 (the default), or 403 for a credential that is too narrow
	Challenge string // WWW-Authenticate; default Bearer
	Reason    string
}

func (e *RefusedError) Error() string { return e.Reason }

// LocalPrincipal is the user of this machine; it is the default of package surface.
const LocalPrincipal = "local"

// AnyOf accepts a request that one of several authenticators accepts. If all refuse it,
// the client gets the refusal of the last one: put the richest challenge there.
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

// HostsOf returns the host names of the gateway that an authenticator knows.
func HostsOf(a Authenticator) []string {
	switch a := a.(type) {
	case *OIDC:
		return []string{a.host()}
	case AnyOf:
		var all []string
		for _, one := range a {
			all = append(all, HostsOf(one)...)
		}
		return all
	}
	return nil
}

// Metadata implements [Describer]: the first authenticator that has metadata answers.
func (a AnyOf) Metadata(path string, served func(path string) bool) ([]byte, bool) {
	for _, auth := range a {
		if m, ok := auth.(Describer); ok {
			if doc, ok := m.Metadata(path, served); ok {
				return doc, true
			}
		}
	}
	return nil, false
}

// bearer returns the token of a request. It ignores tokens in the query, which end up
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
