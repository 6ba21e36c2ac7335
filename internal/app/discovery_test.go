package app

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/logins"
)

// A gateway for several principals does not start while a login may make it ask any
// host for metadata.
func TestGatewayNeedsDiscoveryHosts(t *testing.T) {
	as := authServer(t, nil)
	for _, tt := range []struct {
		name    string
		mode    string
		other   bool // a token of another principal exists
		edit    func(*config.Config)
		refused bool
	}{
		{name: "oidc", mode: "oidc", refused: true},
		{name: "a token of another principal", mode: "token", other: true, refused: true},
		{name: "tokens of one principal", mode: "token"},
		{name: "no authentication", mode: "none", other: true},
		{name: "the setting", mode: "oidc", edit: func(c *config.Config) { c.Usher.Gateway.DiscoveryHosts = []string{"*"} }},
		{name: "discovery is off", mode: "oidc", edit: func(c *config.Config) {
			c.Servers[0].OAuth = &config.OAuth{Discovery: config.Discovery{Mode: "off"}}
		}},
		{name: "an allow list", mode: "oidc", edit: func(c *config.Config) {
			c.Servers[0].OAuth = &config.OAuth{Discovery: config.Discovery{Mode: "auto", Allow: []string{"as.internal"}}}
		}},
		{name: "a configured credential", mode: "oidc", edit: func(c *config.Config) {
			c.Servers[0].Headers = map[string]string{"authorization": "Bearer x"}
		}},
		{name: "a disabled server", mode: "oidc", edit: func(c *config.Config) { c.Servers[0].Disabled = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{protected(t, "notes", as)}}
			if tt.edit != nil {
				tt.edit(cfg)
			}
			h, _ := agentHost(t, cfg, nil)
			if tt.other {
				if _, _, err := h.Frontend().Tokens().Mint(t.Context(), authn.Mint{Principal: "eve"}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := h.Frontend().Authenticator(config.GatewayAuth{Mode: tt.mode, Issuer: "https://id.example.com"}, "https://usher.example.com")
			var d *logins.DiscoveryError
			if errors.As(err, &d) != tt.refused || !tt.refused && err != nil {
				t.Fatalf("%v, want it refused: %v", err, tt.refused)
			}
			if tt.refused && (len(d.Servers) != 1 || !strings.Contains(err.Error(), "gateway.discoveryHosts")) {
				t.Errorf("%v", err)
			}
		})
	}
}

// protectedByName is protected with a server of another host name than that of its
// authorization server.
func protectedByName(t *testing.T, name string, as *fake.AuthServer) config.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	resource := strings.Replace("http://"+srv.Listener.Addr().String()+"/mcp", "127.0.0.1", "localhost", 1)
	m := fake.New(&fake.Options{Name: name})
	srv.Config.Handler = as.Protect(&fake.Protected{Resource: resource}, m.Handler())
	srv.Start()
	t.Cleanup(func() {
		m.Close()
		srv.Close()
	})
	return config.Server{Name: name, Transport: config.TransportHTTP, URL: resource}.WithDefaults()
}

// A principal that came after the start cannot log in either, and the list limits
// which hosts a login reaches.
func TestDiscoveryHostsAreKept(t *testing.T) {
	as := authServer(t, nil)
	begin := func(principal string, hosts ...string) error {
		cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{protectedByName(t, "notes", as)}}
		cfg.Usher.Gateway.Auth.Mode, cfg.Usher.Gateway.DiscoveryHosts = "token", hosts
		h, _ := agentHost(t, cfg, nil)
		_, err := h.logins.ForAgents().Begin(t.Context(), host.Key{Principal: principal, Server: "notes"})
		return err
	}
	var d *logins.DiscoveryError
	if err := begin("eve"); !errors.As(err, &d) {
		t.Errorf("another principal: %v", err)
	}
	if err := begin(""); err != nil {
		t.Errorf("the gateway's own principal: %v", err)
	}
	for _, principal := range []string{"", "eve"} {
		if err := begin(principal, "*.example.com"); err == nil || !strings.Contains(err.Error(), "not in gateway.discoveryHosts") {
			t.Errorf("%q, another host: %v", principal, err)
		}
		for _, glob := range []string{"127.0.0.*", "*"} {
			if err := begin(principal, glob); err != nil {
				t.Errorf("%q, %s: %v", principal, glob, err)
			}
		}
	}
}
