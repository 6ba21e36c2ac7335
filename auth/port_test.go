package auth

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// record is a service on this machine that is neither the configured server nor an
// authorization server, and writes down what it is asked.
type record struct {
	mu   sync.Mutex // guards asks
	asks []string
}

func (r *record) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.asks = append(r.asks, req.Method+" "+req.URL.Path)
	r.mu.Unlock()
	_, _ = io.WriteString(w, `{"access_token":"x","token_type":"Bearer","client_id":"c"}`)
}

func (r *record) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.asks
	r.asks = nil
	return out
}

// A hostile server on this machine does not lead a login to other services here: not by
// the address of its metadata, and by the name of its authorization server to nothing
// but a look at the places where such a server describes itself.
func TestLocalServerReachesOwnPortOnly(t *testing.T) {
	other := &record{}
	victim := httptest.NewServer(other)
	defer victim.Close()
	var evil *httptest.Server
	var as string
	metadata := "/prm"
	evil = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q", metadata))
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/prm":
			_, _ = fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":[%q]}`, evil.URL, as)
		case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server"):
			_, _ = fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%s/authorize","token_endpoint":"%s/containers/create","registration_endpoint":"%s/containers/create","code_challenge_methods_supported":["S256"]}`,
				evil.URL, evil.URL, victim.URL, victim.URL)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer evil.Close()
	e := New(vault.NewMemory(), nil)
	defer func() { _ = e.Close() }()
	srv := config.Server{Name: "srv", URL: evil.URL + "/mcp", OAuth: &config.OAuth{}}
	begin := func() error {
		_, err := e.Begin(t.Context(), Account{Server: "srv"}, srv, nil)
		return err
	}

	metadata = victim.URL + "/secrets"
	wantErr(t, begin(), oauth.ErrAddress, "oauth.discovery.allow", victim.Listener.Addr().String())
	if got := other.take(); len(got) != 0 {
		t.Errorf("by resource metadata: %v", got)
	}

	metadata, as = evil.URL+"/prm", victim.URL
	if err := begin(); err == nil {
		t.Error("a service that is no authorization server is one")
	}
	for _, ask := range other.take() {
		if !strings.HasPrefix(ask, "GET /.well-known/") {
			t.Errorf("by the name of the authorization server: %s", ask)
		}
	}

	as = evil.URL
	wantErr(t, begin(), oauth.ErrAddress)
	if got := other.take(); len(got) != 0 {
		t.Errorf("by an endpoint: %v", got)
	}
	_, port, _ := net.SplitHostPort(victim.Listener.Addr().String())
	srv.OAuth.Discovery.Allow = []string{"127.0.0.1:" + port}
	if err := begin(); err != nil || len(other.take()) != 1 {
		t.Errorf("with the port allowed: %v", err)
	}
}
