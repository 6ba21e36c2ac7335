package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
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
		g := newGuard(bounds{Server: tt.server, Allow: tt.allow, Named: tt.named})
		g.lookup = lookup
		err := g.check(t.Context(), tt.host, "443", netip.MustParseAddr(tt.ip))
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, errAddress) {
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
	e := New(vault.NewMemory(), nil)
	defer func() { _ = e.Close() }()
	srv := config.Server{Name: "srv", URL: "https://public.example/mcp", OAuth: &config.OAuth{}}
	for name, place := range map[string]string{
		"address": address + "/prm", "name": strings.Replace(address, "127.0.0.1", "localhost", 1) + "/prm",
		"decimal": strings.Replace(address, "127.0.0.1", "2130706433", 1), "mapped": strings.Replace(address, "127.0.0.1", "[::ffff:127.0.0.1]", 1),
		"zero": strings.Replace(address, "127.0.0.1", "0.0.0.0", 1),
	} {
		w := e.web(boundsOf(srv))
		var doc map[string]any
		err := w.document(t.Context(), "a document", place, &doc)
		w.close()
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
		_, _, err = w.exchange(t.Context(), http.MethodPost, mustURL(t, place), http.Header{}, "secret")
		if err == nil {
			t.Errorf("%s: a request with secrets went out", name)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Fatalf("%d hits", n)
	}
	srv.OAuth.Discovery.Allow = []string{"127.0.0.1"}
	w := e.web(boundsOf(srv))
	defer w.close()
	var doc map[string]any
	if err := w.document(t.Context(), "a document", address, &doc); err != nil || hits.Load() != 1 {
		t.Errorf("with the host allowed: %v, %d hits", err, hits.Load())
	}
}

// A local server may have a local authorization server, and a redirect from there to
// elsewhere on this machine stays within bounds; to another network it does not.
func TestLocalLogin(t *testing.T) {
	as := fake.NewAuth(nil)
	issuer, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	prot := &fake.Protected{Resource: fmt.Sprintf("http://%s/mcp", l.Addr())}
	hs := &http.Server{Handler: as.Protect(prot, okHandler)} //nolint:gosec // a test
	go func() { _ = hs.Serve(l) }()
	defer func() { _ = hs.Close() }()
	e := New(vault.NewMemory(), nil)
	defer func() { _ = e.Close() }()
	srv := config.Server{Name: "srv", URL: prot.Resource, OAuth: &config.OAuth{}}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	a, c := Account{Server: "srv"}, &http.Client{Transport: e.Transport(tr)}
	it := NewInteractive(func(ctx context.Context, page string) error {
		back, err := as.Consent(ctx, page)
		if err == nil {
			get(t, "GET", back.String(), nil)
		}
		return err
	})
	if _, err := e.Browser(t.Context(), it, a, srv, nil, nil); err != nil {
		t.Fatal(err)
	}
	as.Expire()
	if err := callAs(t.Context(), e, c, a, srv); err != nil {
		t.Error(err)
	}
	as.Set("metadata-redirect=http://10.0.0.1:1/")
	if _, err := e.Begin(t.Context(), a, srv, nil); err == nil || !strings.Contains(err.Error(), "not encrypted") {
		t.Errorf("redirect to a private address: %v", err)
	}
	as.Set("metadata-redirect=https://169.254.169.254/")
	if _, err := e.Begin(t.Context(), a, srv, nil); !errors.Is(err, errAddress) {
		t.Errorf("redirect to the metadata service: %v", err)
	}
	_ = issuer
}
