package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/connlimit"
	"github.com/usher-mcp/usher/surface"
)

// covers reports whether an identity may use a path: a token that is limited to
// profiles reaches nothing else. The gate decides on servers and tools.
func covers(id authn.Identity, path string) bool {
	if len(id.Profiles) == 0 {
		return true
	}
	name, ok := strings.CutPrefix(strings.TrimSuffix(path, "/mcp"), "/profiles/")
	return ok && slices.Contains(id.Profiles, name)
}

// identify says who sent a request, or answers it.
func (g *Gateway) identify(w http.ResponseWriter, r *http.Request) (authn.Identity, bool) {
	id, ok := g.whoSent(w, r)
	if ok {
		connlimit.Authenticated(r.Context(), id.Principal)
	}
	return id, ok
}

func (g *Gateway) whoSent(w http.ResponseWriter, r *http.Request) (authn.Identity, bool) {
	if g.opt.Auth == nil {
		return authn.Identity{Principal: authn.LocalPrincipal}, true
	}
	id, err := g.opt.Auth.Authenticate(r.Context(), r)
	var no *authn.RefusedError
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
	return authn.Identity{}, false
}

// owner names who may use what a client opened, for authenticated data: the same
// principal with the same credential and scope.
func owner(a surface.Agent) string {
	return fmt.Sprintf("%q %q %q %q", a.Principal, a.Credential, a.Servers, a.Tools)
}

// agent is what a view is told about a request of this identity.
func agentOf(id authn.Identity) surface.Agent {
	return surface.Agent{
		Principal: id.Principal, Credential: id.Credential, Expires: id.Expires, Servers: id.Servers, Tools: id.Tools,
	}
}
