package gateway

import (
	"net/http"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/lifetime"
)

// bind makes a request end with the credential it came with, until Release is called.
// Nil: it came with none.
func (g *Gateway) bind(r *http.Request, id authn.Identity) (*http.Request, *lifetime.Context) {
	if id.Credential == "" {
		return r, nil
	}
	g.watch()
	b := g.credentials.Bind(r.Context(), id.Credential, id.Expires)
	return r.WithContext(b), b
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
	g.credentials.AddTo(set)
	g.sessions.addTo(set)
	out := make([]string, 0, len(set))
	for id := range set {
		out = append(out, id)
	}
	return out
}

// revoke ends all that a credential was used to open.
func (g *Gateway) revoke(credential string) {
	g.credentials.Revoke(credential)
	g.sessions.endCredential(credential)
}
