package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

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
	if _, err := e.Begin(t.Context(), a, srv, nil); !errors.Is(err, oauth.ErrAddress) {
		t.Errorf("redirect to the metadata service: %v", err)
	}
	_ = issuer
}
