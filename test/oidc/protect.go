package oidc

import (
	"encoding/json"
	"net/http"
	"strings"
)

const metadataPath = "/.well-known/oauth-protected-resource/mcp"

// Protect lets requests through whose token the authorization server says is good for
// this very server, asked with c, and tells others where to log in (RFC 9728). The
// server is reached at root.
func (p *Provider) Protect(root string, c *http.Client, next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == metadataPath {
			rw.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(rw).Encode(map[string]any{ // the client has gone if this fails
				"resource": root + "/mcp", "authorization_servers": []string{p.Issuer}, "scopes_supported": []string{"tools:read", "tools:write"},
			})
			return
		}
		if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			v, err := p.Introspect(r.Context(), c, token)
			if err != nil {
				http.Error(rw, err.Error(), http.StatusBadGateway)
				return
			}
			if v.Active && v.Audience == root+"/mcp" {
				next.ServeHTTP(rw, r)
				return
			}
		}
		rw.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+root+metadataPath+`"`)
		http.Error(rw, "unauthorized", http.StatusUnauthorized)
	})
}
