package oauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/usher-mcp/usher/config"
)

func TestGuard(t *testing.T) {
	names := map[string][]string{
		"intranet.example": {"10.1.2.3"}, "mixed.example": {"10.1.2.3", "8.8.8.8"}, "public.example": {"8.8.8.8"},
		"loop.example": {"127.0.0.1"}, "meta.example": {"169.254.169.254"}, "cgnat.example": {"100.64.0.9"},
	}
	lookup := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		var out []netip.Addr
		for _, ip := range names[host] {
			out = append(out, netip.MustParseAddr(ip))
		}
		return out, nil
	}
	for _, tt := range []struct {
		server string
		allow  []string
		named  []string
		host   string
		ip     string
		ok     bool
	}{
		{server: "public.example", host: "as.example", ip: "8.8.4.4", ok: true},
		{server: "public.example", host: "as.example", ip: "10.0.0.1"},
		{server: "public.example", host: "as.example", ip: "127.0.0.1"},
		{server: "public.example", host: "as.example", ip: "::1"},
		{server: "public.example", host: "as.example", ip: "169.254.169.254"},
		{server: "public.example", host: "as.example", ip: "::ffff:169.254.169.254"},
		{server: "public.example", host: "as.example", ip: "100.64.0.1"},
		{server: "public.example", host: "as.example", ip: "fd00::1"},
		// The server's own host resolves there.
		{server: "intranet.example", host: "as.example", ip: "10.1.2.3", ok: true},
		{server: "intranet.example", host: "as.example", ip: "10.1.2.4"},
		{server: "intranet.example", host: "as.example", ip: "127.0.0.1"},
		{server: "mixed.example", host: "as.example", ip: "10.1.2.3"},
		{server: "cgnat.example", host: "cgnat.example", ip: "100.64.0.9", ok: true},
		{server: "loop.example", host: "as.example", ip: "127.0.0.1", ok: true},
		{server: "meta.example", host: "meta.example", ip: "169.254.169.254"},
		{server: "169.254.169.254", host: "169.254.169.254", ip: "169.254.169.254", ok: true},
		{server: "127.0.0.1", host: "localhost", ip: "::1", ok: true},
		{server: "localhost", host: "127.0.0.1", ip: "127.0.0.1", ok: true},
		{server: "localhost", host: "as.example", ip: "10.0.0.1"},
		{server: "10.0.0.1", host: "10.0.0.1", ip: "10.0.0.1", ok: true},
		{server: "10.0.0.1", host: "10.0.0.2", ip: "10.0.0.2"},
		// The configuration names the host.
		{server: "public.example", allow: []string{"as.corp"}, host: "as.corp", ip: "10.0.0.1", ok: true},
		{server: "public.example", allow: []string{"AS.corp:443"}, host: "as.corp", ip: "10.0.0.1", ok: true},
		{server: "public.example", allow: []string{"as.corp:8443"}, host: "as.corp", ip: "10.0.0.1"},
		{server: "public.example", allow: []string{"as.corp"}, host: "evil.as.corp", ip: "10.0.0.1"},
		{server: "public.example", allow: []string{"[::1]"}, host: "::1", ip: "::1", ok: true},
		{server: "public.example", named: []string{"as.corp"}, host: "as.corp", ip: "10.0.0.1", ok: true},
		{server: "public.example", named: []string{"as.corp"}, host: "as.corp", ip: "169.254.169.254"},
	} {
		g := newFetchGuard(Bounds{Server: tt.server, Allow: tt.allow, Named: tt.named})
		g.lookup = lookup
		err := g.check(t.Context(), tt.host, "443", netip.MustParseAddr(tt.ip))
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrAddress) {
			t.Errorf("server %s allow %v named %v: %s at %s: %v, want allowed %v", tt.server, tt.allow, tt.named, tt.host, tt.ip, err, tt.ok)
		}
	}
}

// trap is a private service that nobody must reach.
func trap(t *testing.T) (address string, hits *atomic.Int32) {
	t.Helper()
	hits = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		_, _ = io.WriteString(w, `{"resource":"x","secret":"canary-body"}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, hits
}

// Through the real dialer: a public server's documents do not lead to a loopback
// service, by address, by name, by redirect or by endpoint; an allow list does.
func TestGuardedNetwork(t *testing.T) {
	address, hits := trap(t)
	srv := config.Server{Name: "srv", URL: "https://public.example/mcp", OAuth: &config.OAuth{}}
	for name, place := range map[string]string{
		"address": address + "/prm", "name": strings.Replace(address, "127.0.0.1", "localhost", 1) + "/prm",
		"decimal": strings.Replace(address, "127.0.0.1", "2130706433", 1), "mapped": strings.Replace(address, "127.0.0.1", "[::ffff:127.0.0.1]", 1),
		"zero": strings.Replace(address, "127.0.0.1", "0.0.0.0", 1),
	} {
		w := NewClient(BoundsOf(srv), ClientOptions{})
		var doc map[string]any
		err := w.document(t.Context(), "a document", place, &doc)
		w.Close()
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
		_, _, err = w.exchange(t.Context(), http.MethodPost, parseURL(t, place), http.Header{}, "secret")
		if err == nil {
			t.Errorf("%s: a request with secrets went out", name)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Fatalf("%d hits", n)
	}
	srv.OAuth.Discovery.Allow = []string{"127.0.0.1"}
	w := NewClient(BoundsOf(srv), ClientOptions{})
	defer w.Close()
	var doc map[string]any
	if err := w.document(t.Context(), "a document", address, &doc); err != nil || hits.Load() != 1 {
		t.Errorf("with the host allowed: %v, %d hits", err, hits.Load())
	}
}

func TestGuardPorts(t *testing.T) {
	loop := netip.MustParseAddr("127.0.0.1")
	for _, tt := range []struct {
		b    Bounds
		port string
		ok   bool
	}{
		{Bounds{Server: "localhost", Port: "3000"}, "3000", true},
		{Bounds{Server: "localhost", Port: "3000"}, "2375", false},
		{Bounds{Server: "127.0.0.1", Port: "3000", Ports: []string{"8080"}}, "8080", true},
		{Bounds{Server: "127.0.0.1", Port: "3000", Ports: []string{"8080"}}, "8081", false},
		{Bounds{Server: "127.0.0.1", Port: "3000", Named: []string{"localhost:8080"}}, "8080", true},
		{Bounds{Server: "127.0.0.1", Port: "3000", Named: []string{"localhost:8080"}}, "8081", false},
		{Bounds{Server: "127.0.0.1", Port: "3000", Allow: []string{"localhost"}}, "8081", true},
		{Bounds{Server: "127.0.0.1"}, "8081", true}, // as older versions wrote it down
	} {
		if err := newFetchGuard(tt.b).check(t.Context(), "localhost", tt.port, loop); (err == nil) != tt.ok {
			t.Errorf("%+v, port %s: %v, want allowed %v", tt.b, tt.port, err, tt.ok)
		}
	}
	b := BoundsOf(config.Server{URL: "https://a.example/mcp", OAuth: &config.OAuth{Issuer: "http://localhost:8080", TokenEndpoint: "https://b.example/t"}})
	if b.Port != "443" || strings.Join(b.Named, " ") != "localhost:8080 b.example:443" {
		t.Errorf("%+v", b)
	}
}
