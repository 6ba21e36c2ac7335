package fake

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Protected says how a resource is protected by an AuthServer.
type Protected struct {
	// Resource is the address of the resource, such as http://127.0.0.1:1/mcp.
	Resource string
	// Published is the resource that the metadata names; default Resource.
	Published string
	// Servers are the authorization servers that the metadata names; default the
	// one that protects.
	Servers []string
	// Scopes is scopes_supported of the metadata.
	Scopes []string
	// Challenge is the scope that a refusal asks for.
	Challenge string
	// Need returns the scopes that a request needs; nil needs none.
	Need func(*http.Request) []string
	// NoMetadata publishes nothing, as servers of 2025-03-26 do.
	NoMetadata bool
	// NoHint leaves resource_metadata out of the challenge.
	NoHint bool
	// Hint replaces the address in the challenge.
	Hint string
}

// Protect serves next to requests with a good token, and the resource's metadata.
// What is asked stands in the ledger as EventResource; Detail is ok, none (no
// token), expired, foreign (a token this server never issued), scope or proof.
func (s *AuthServer) Protect(p *Protected, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
			s.serveResourceMetadata(w, r, p)
			return
		}
		verdict, scopes := s.judge(r, p)
		s.note(EventResource, r.Method, r.URL.Path, verdict, nil)
		switch verdict {
		case "ok":
			next.ServeHTTP(w, r)
			return
		case "scope":
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+strings.Join(scopes, " ")+`"`+p.hint())
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		case "use_dpop_nonce":
			w.Header().Set("DPoP-Nonce", s.currentNonce())
			w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
		case "none":
			w.Header().Set("WWW-Authenticate", strings.TrimSuffix(`Bearer realm="fake"`+p.scope()+p.hint(), ","))
		default:
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`+p.scope()+p.hint())
		}
		http.Error(w, "unauthorized", http.StatusUnauthorized)
	})
}

func (p *Protected) scope() string {
	if p.Challenge == "" {
		return ""
	}
	return `, scope="` + p.Challenge + `"`
}

func (p *Protected) hint() string {
	switch {
	case p.Hint != "":
		return `, resource_metadata="` + p.Hint + `"`
	case p.NoHint || p.NoMetadata:
		return ""
	}
	root, path := splitAddress(p.Resource)
	return `, resource_metadata="` + root + "/.well-known/oauth-protected-resource" + path + `"`
}

func splitAddress(address string) (root, path string) {
	scheme, rest, _ := strings.Cut(address, "://")
	host, path, _ := strings.Cut(rest, "/")
	if path != "" {
		path = "/" + path
	}
	return scheme + "://" + host, path
}

func (s *AuthServer) serveResourceMetadata(w http.ResponseWriter, r *http.Request, p *Protected) {
	s.note(EventMetadata, r.URL.Path, "resource", "", nil)
	if p.NoMetadata {
		http.NotFound(w, r)
		return
	}
	doc := map[string]any{"resource": p.Resource, "authorization_servers": p.Servers}
	if p.Published != "" {
		doc["resource"] = p.Published
	}
	if p.Servers == nil {
		doc["authorization_servers"] = []string{s.Issuer()}
	}
	if p.Scopes != nil {
		doc["scopes_supported"] = p.Scopes
	}
	writeJSON(w, http.StatusOK, doc)
}

// judge decides about one request to a resource.
func (s *AuthServer) judge(r *http.Request, p *Protected) (verdict string, needed []string) {
	scheme, text, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok {
		return "none", nil
	}
	s.mu.Lock()
	t := s.access[text]
	s.mu.Unlock()
	if t == nil {
		return "foreign", nil
	}
	if t.family.jkt != "" {
		root, path := splitAddress(p.Resource)
		jkt, problem := s.checkProof(r, text, root+path)
		if problem == "use_dpop_nonce" {
			return problem, nil
		}
		if problem != "" || scheme != "DPoP" || jkt != t.family.jkt {
			return "proof", nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case t.family.revoked, time.Now().After(t.expires):
		return "expired", nil
	case t.family.resource != "" && p.Published == "" && !strings.HasPrefix(p.Resource, t.family.resource):
		return "audience", nil
	}
	if p.Need != nil {
		for _, want := range p.Need(r) {
			if !slices.Contains(t.family.scopes, want) {
				return "scope", p.Need(r)
			}
		}
	}
	return "ok", nil
}
