package oauth

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
)

func TestPlaces(t *testing.T) {
	for address, want := range map[string][]string{
		"https://h/mcp":        {"https://h/.well-known/oauth-protected-resource/mcp", "https://h/.well-known/oauth-protected-resource"},
		"https://h/a/b/":       {"https://h/.well-known/oauth-protected-resource/a/b", "https://h/.well-known/oauth-protected-resource"},
		"https://h":            {"https://h/.well-known/oauth-protected-resource"},
		"https://h:1/":         {"https://h:1/.well-known/oauth-protected-resource"},
		"https://h/mcp?tenant": {"https://h/.well-known/oauth-protected-resource/mcp?tenant", "https://h/.well-known/oauth-protected-resource"},
	} {
		if diff := cmp.Diff(want, resourcePlaces(parseURL(t, address), Challenge{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
	}
	if got := resourcePlaces(parseURL(t, "https://h"), Challenge{ResourceMetadata: "https://x/prm"}); got[0] != "https://x/prm" {
		t.Errorf("the challenge's address is not first: %v", got)
	}
	for issuer, want := range map[string][]string{
		"https://as":   {"https://as/.well-known/oauth-authorization-server", "https://as/.well-known/openid-configuration"},
		"https://as/t": {"https://as/.well-known/oauth-authorization-server/t", "https://as/.well-known/openid-configuration/t", "https://as/t/.well-known/openid-configuration"},
		"https://as/t/": {
			"https://as/.well-known/oauth-authorization-server/t", "https://as/.well-known/openid-configuration/t", "https://as/t/.well-known/openid-configuration",
		},
	} {
		if diff := cmp.Diff(want, metadataPlaces(parseURL(t, issuer))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", issuer, diff)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		resource, server string
		ok               bool
	}{
		{"https://h/mcp", "https://h/mcp", true},
		{"https://h", "https://h/mcp", true},
		{"https://h/", "https://h/mcp", true},
		{"https://H:443/mcp", "https://h/mcp", true},
		{"https://h/a", "https://h/a/b", true},
		{"https://h/mcp/", "https://h/mcp", true},
		{"https://h/mc", "https://h/mcp", false},
		{"https://h/mcp/x", "https://h/mcp", false},
		{"https://evil/mcp", "https://h/mcp", false},
		{"http://h/mcp", "https://h/mcp", false},
		{"https://h:8443/mcp", "https://h/mcp", false},
		{"https://h.evil/mcp", "https://h/mcp", false},
		{"https://h/mcp#f", "https://h/mcp", false},
		{"", "https://h/mcp", false},
		{"mcp", "https://h/mcp", false},
		{"urn:x", "https://h/mcp", false},
	} {
		if err := ResourceCovers(tt.resource, parseURL(t, tt.server)); (err == nil) != tt.ok {
			t.Errorf("%q covers %q: %v", tt.resource, tt.server, err)
		}
	}
}

// The address of the page is rebuilt from its parts: nothing is left for a shell.
func TestPageURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://as.example/authorize?a=b&c=%22%60":  "https://as.example/authorize?a=b&c=%22%60",
		"https://as.example/a?x='|touch+/tmp/x;&y=`": "",
		"https://as.example/a?x='y'&z=(1)":           "https://as.example/a?x=%27y%27&z=%281%29",
		"http://127.0.0.1:1/a":                       "http://127.0.0.1:1/a",
		"http://localhost:1/a":                       "http://localhost:1/a",
		"http://[::1]:1/a":                           "http://[::1]:1/a",
		"http://localhost.evil.example/a":            "",
		"http://127.0.0.1.evil.example/a":            "",
		"https://as.example/a#f":                     "",
		"HTTPS://as.example/a":                       "https://as.example/a",
		"//as.example/a":                             "",
		"-https://as.example":                        "",
		"https:///a":                                 "",
	} {
		u, err := PageURL("page", raw)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q was taken as %s", raw, u)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%q became %v, %v; want %q", raw, u, err, want)
		}
	}
}

func TestCatalogue(t *testing.T) {
	if q := quirksOf("https://login.microsoftonline.com/tenant/v2.0"); q.resource != ResourceOmit {
		t.Error("a known provider is not known")
	}
	if q := quirksOf("https://login.microsoftonline.com.evil.example"); q.resource != "" {
		t.Error("an unknown provider is known")
	}
	for host, q := range knownProviders {
		if q.endpoints.TokenEndpoint != "" {
			if err := q.endpoints.check(); err != nil {
				t.Errorf("%s: %v", host, err)
			}
		}
	}
}

// A provider that is known not to take the parameter is only believed to be that of
// the server where a person has registered a client for it: a hostile server may name
// any authorization server.
func TestQuirkNeedsConfiguredClient(t *testing.T) {
	for _, tt := range []struct {
		o    config.OAuth
		want string
	}{
		{config.OAuth{}, serverURL},
		{config.OAuth{ClientID: "mine"}, ""},
		{config.OAuth{ClientID: "mine", Resource: resourceExact}, serverURL},
	} {
		p := &Provider{server: parseURL(t, serverURL), Issuer: "https://accounts.google.com", Metadata: &ServerMetadata{}}
		if err := p.settle(tt.o); err != nil || p.Resource != tt.want {
			t.Errorf("%+v: resource %q, %v; want %q", tt.o, p.Resource, err, tt.want)
		}
	}
}
