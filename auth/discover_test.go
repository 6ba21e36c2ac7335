package auth

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
)

func TestDiscoveryForms(t *testing.T) {
	tests := []struct {
		name   string
		as     fake.AuthOptions
		prot   fake.Protected
		oauth  config.OAuth
		scope  string // asked for
		res    string // resource parameter; "-" is none
		issuer string
	}{
		{name: "challenge", prot: fake.Protected{Challenge: "a b"}, scope: "a b"},
		{name: "well-known", prot: fake.Protected{NoHint: true, Scopes: []string{"x"}}, scope: "x"},
		{name: "challenge before published scopes", prot: fake.Protected{Challenge: "a", Scopes: []string{"x"}}, scope: "a"},
		{name: "nothing known"},
		{name: "configured scopes", prot: fake.Protected{Challenge: "a"}, oauth: config.OAuth{Scopes: []string{"mine"}}, scope: "mine"},
		{name: "added scopes", prot: fake.Protected{Challenge: "a"}, oauth: config.OAuth{Scopes: []string{"+extra"}}, scope: "a extra"},
		{name: "offline access", as: fake.AuthOptions{Scopes: []string{"a", oauth.ScopeOfflineAccess}}, prot: fake.Protected{Challenge: "a"}, scope: "a offline_access"},
		{name: "offline access not offered", as: fake.AuthOptions{Scopes: []string{"a"}}, prot: fake.Protected{Challenge: "a"}, scope: "a"},
		{name: "offline access with configured scopes", as: fake.AuthOptions{Scopes: []string{oauth.ScopeOfflineAccess}}, oauth: config.OAuth{Scopes: []string{"mine"}}, scope: "mine"},
		{name: "openid only", as: fake.AuthOptions{Switches: []string{"only-oidc"}}},
		{name: "issuer with path", as: fake.AuthOptions{Path: "/tenant"}, issuer: "https://as.example/tenant"},
		{name: "issuer with path, openid only", as: fake.AuthOptions{Path: "/tenant", Switches: []string{"only-oidc"}}, issuer: "https://as.example/tenant"},
		{name: "resource is the origin", prot: fake.Protected{Published: "https://mcp.example"}, res: "https://mcp.example"},
		{name: "resource with slash", prot: fake.Protected{Published: "https://mcp.example/"}, res: "https://mcp.example/"},
		{name: "omitted resource", oauth: config.OAuth{Resource: "omit"}, res: "-"},
		{name: "own resource", oauth: config.OAuth{Resource: "https://mcp.example"}, res: "https://mcp.example"},
		{name: "configured metadata", as: fake.AuthOptions{Switches: []string{"issuer=https://sts.example/adfs"}}, oauth: config.OAuth{MetadataURL: "https://as.example/.well-known/openid-configuration"}, issuer: "https://sts.example/adfs"},
		{name: "no discovery", as: fake.AuthOptions{Switches: []string{"no-metadata", "iss-off"}}, oauth: config.OAuth{Discovery: config.Discovery{Mode: "off"}, AuthorizationEndpoint: "https://as.example/authorize", TokenEndpoint: "https://as.example/token", ClientID: "mine"}, issuer: "-"},
		{name: "endpoints in place of metadata", as: fake.AuthOptions{Switches: []string{"no-metadata", "iss-off"}}, oauth: config.OAuth{AuthorizationEndpoint: "https://as.example/authorize", TokenEndpoint: "https://as.example/token", ClientID: "mine"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.as.Clients = []fake.AuthClient{{ID: "mine"}}
			w := newWorld(t, &tt.as, &tt.prot)
			w.srv.OAuth = &tt.oauth
			if strings.HasPrefix(tt.issuer, "https://sts") {
				w.as.Set("iss-wrong=" + tt.issuer)
			}
			w.login()
			e := w.as.Requests(fake.EventAuthorize, "")[0]
			if e.Param("scope") != tt.scope {
				t.Errorf("asked for scope %q, want %q", e.Param("scope"), tt.scope)
			}
			want := map[string]string{"": mcpURL, "-": ""}[tt.res]
			if tt.res != "" && tt.res != "-" {
				want = tt.res
			}
			if e.Param("resource") != want || w.as.Requests(fake.EventToken, "")[0].Param("resource") != want {
				t.Errorf("resource %q, want %q", e.Param("resource"), want)
			}
			if g := w.grant(); tt.issuer != "-" && g.Issuer != tt.issuer && tt.issuer != "" {
				t.Errorf("issuer %q", g.Issuer)
			}
			if tt.as.Path == "" {
				w.mustCall()
			}
		})
	}
}

// Servers of 2025-03-26 know no resource metadata: the server is its own
// authorization server, with metadata or with default endpoints.
func TestOldServers(t *testing.T) {
	for name, switches := range map[string][]string{"metadata": nil, "default endpoints": {"no-metadata", "iss-off"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &fake.AuthOptions{Switches: switches}, &fake.Protected{NoMetadata: true})
			w.as.Serve("https://" + mcpHost)
			mux := http.NewServeMux()
			mux.Handle("/", w.as.Handler())
			mux.Handle("/mcp", w.as.Protect(w.prot, okHandler))
			w.net.add(mcpHost, mux)
			w.login()
			w.mustCall()
			if g := w.grant(); g.Issuer != "https://"+mcpHost {
				t.Errorf("issuer %q", g.Issuer)
			}
		})
	}
}

// What must not lead to a login page, or to any request elsewhere.
func TestHostileMetadata(t *testing.T) {
	bad := func(s ...string) fake.AuthOptions { return fake.AuthOptions{Switches: s} }
	for name, tt := range map[string]struct {
		as    fake.AuthOptions
		prot  fake.Protected
		oauth config.OAuth
		says  string
	}{
		"issuer of somebody else":       {as: bad("issuer=https://evil.example"), says: "not of"},
		"issuer with slash":             {as: bad("issuer=https://as.example/"), says: "oauth.issuer"},
		"resource of somebody else":     {prot: fake.Protected{Published: "https://evil.example/mcp"}, says: "not for this server"},
		"resource of another path":      {prot: fake.Protected{Published: "https://mcp.example/other"}, says: "not for this server"},
		"no PKCE":                       {as: bad("no-pkce"), says: "S256"},
		"plain PKCE":                    {as: bad("plain-pkce"), says: "S256"},
		"javascript page":               {as: bad("authorize-url=javascript:alert(1)"), says: "scheme"},
		"file page":                     {as: bad("authorize-url=file:///etc/passwd"), says: "scheme"},
		"data page":                     {as: bad("authorize-url=data:text/html,x"), says: "scheme"},
		"vbscript page":                 {as: bad("authorize-url=vbscript:x"), says: "scheme"},
		"page with command":             {as: bad("authorize-url=http://a/$(touch PWNED)"), says: "authorization_endpoint"},
		"page with backtick":            {as: bad("authorize-url=http://`id`/"), says: "authorization_endpoint"},
		"page with quote":               {as: bad(`authorize-url=https://x"&calc`), says: "authorization_endpoint"},
		"page as option":                {as: bad("authorize-url=--upload-pack=x"), says: "authorization_endpoint"},
		"page without encryption":       {as: bad("authorize-url=http://as.example/authorize"), says: "not encrypted"},
		"page with user":                {as: bad("authorize-url=https://as.example@evil.example/"), says: "user name"},
		"page with line break":          {as: bad("authorize-url=https://as.example/\nx"), says: "authorization_endpoint"},
		"tokens without encryption":     {as: bad("token-url=http://as.example/token"), says: "not encrypted"},
		"registration elsewhere":        {as: bad("register-url=ftp://as.example/"), says: "scheme"},
		"no token endpoint":             {as: bad("token-url="), says: "token_endpoint"},
		"huge metadata":                 {as: bad("metadata-huge=2048"), says: "larger"},
		"metadata that fails":           {as: bad("metadata-status=500"), says: "HTTP 500"},
		"metadata elsewhere, plain":     {as: bad("metadata-redirect=http://evil.example/"), says: "encryption"},
		"metadata elsewhere, file":      {as: bad("metadata-redirect=file:///etc/passwd"), says: ""},
		"issuer without encryption":     {prot: fake.Protected{Servers: []string{"http://as.example"}}, says: "not encrypted"},
		"issuer is no address":          {prot: fake.Protected{Servers: []string{"as"}}, says: "scheme"},
		"issuer with query":             {prot: fake.Protected{Servers: []string{"https://as.example?x"}}, says: "query"},
		"hint without encryption":       {prot: fake.Protected{Hint: "http://mcp.example/prm"}, says: "not encrypted"},
		"hint to a file":                {prot: fake.Protected{Hint: "file:///etc/passwd"}, says: "scheme"},
		"no metadata of a named issuer": {as: bad("no-metadata"), says: "publishes no metadata"},
		"configured, but moved":         {oauth: config.OAuth{Issuer: "https://other.example"}, says: "oauth.issuer"},
		"discovery off, nothing set":    {oauth: config.OAuth{Discovery: config.Discovery{Mode: "off"}}, says: "oauth.tokenEndpoint"},
		"resource that is no URI":       {oauth: config.OAuth{Resource: "mcp"}, says: "oauth.resource"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &tt.as, &tt.prot)
			w.srv.OAuth = &tt.oauth
			p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("page %v, error %v, want it to say %q", p, err, tt.says)
			}
			if err != nil && (strings.Contains(err.Error(), "canary-body") || !strings.Contains(err.Error(), "srv")) {
				t.Errorf("error %v", err)
			}
			if n := w.net.reached("evil.example") + w.tokens(""); n != 0 {
				t.Errorf("%d requests where none should go", n)
			}
		})
	}
}

// What is a page and not a document counts as absent.
func TestMetadataIsAPage(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Switches: []string{"metadata-html;times=1"}}, nil)
	w.login() // the second place has it
}

func TestStdioHasNoLogin(t *testing.T) {
	w := newWorld(t, nil, nil)
	_, err := w.e.Begin(t.Context(), w.a, config.Server{Name: "child", Command: "x"}, nil)
	if err == nil || !strings.Contains(err.Error(), "env") || errors.Is(err, ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}
