package bulk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// wires is a network in memory: handlers by host. It works inside a bubble.
type wires struct {
	mu    sync.Mutex // guards hosts
	hosts map[string]http.Handler
}

func (n *wires) add(host string, h http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts == nil {
		n.hosts = map[string]http.Handler{}
	}
	n.hosts[host] = h
}

func (n *wires) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	h := n.hosts[req.URL.Host]
	n.mu.Unlock()
	if h == nil {
		return nil, errors.New("no such host")
	}
	if strings.HasPrefix(req.URL.Host, "badtls.") { // its certificate is not good
		return nil, &tls.CertificateVerificationError{Err: errors.New("certificate signed by unknown authority")}
	}
	in := req.Clone(req.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.RequestURI, in.Host = req.URL.RequestURI(), req.URL.Host
	rec := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(rec, in)
	}()
	<-done // handlers heed the request's context
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	resp := rec.Result()
	resp.Request = req
	return resp, nil
}

// slowly waits before every answer, forever if wait is 0.
func slowly(wait time.Duration, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var up <-chan time.Time
		if wait > 0 {
			up = time.After(wait)
		}
		select {
		case <-up:
			h.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// world is a network of authorization servers and the resources they protect.
type world struct {
	t       *testing.T
	net     *wires
	store   vault.Store
	servers map[string]*fake.AuthServer // by host
	targets []Target
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, net: &wires{}, store: vault.NewMemory(), servers: map[string]*fake.AuthServer{}}
	t.Cleanup(func() { _ = w.store.Close() })
	return w
}

// as adds an authorization server.
func (w *world) as(host string, switches ...string) *fake.AuthServer {
	s := fake.NewAuth(&fake.AuthOptions{Name: host, Switches: switches})
	s.Serve("https://" + host)
	w.servers[host] = s
	w.net.add(host, s.Handler())
	return s
}

// protect adds a server that one of them protects. It names that one, or issuers.
func (w *world) protect(name, asHost string, issuers ...string) Target {
	host := name + ".example"
	resource := "https://" + host + "/mcp"
	ok := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, `{}`) })
	w.net.add(host, w.servers[asHost].Protect(&fake.Protected{Resource: resource, Servers: issuers}, ok))
	t := Target{
		Account: auth.Account{Server: name},
		Server:  config.Server{Name: name, Transport: config.TransportHTTP, URL: resource},
	}
	w.targets = append(w.targets, t)
	return t
}

// process is what one process has: an engine and a driver over the common store.
type process struct {
	*Driver
	e *auth.Engine
}

func (w *world) start(o *Options) *process {
	e := auth.New(w.store, &auth.Options{RoundTripper: w.net})
	p := &process{New(NewEngine(e, nil), o), e}
	w.t.Cleanup(p.end)
	return p
}

func (p *process) end() {
	_ = p.Driver.Close()
	_ = p.e.Close()
}

// consent is what a person does: it returns the address the browser ends at.
func (w *world) consent(ctx context.Context, p auth.Pending) (string, error) {
	as := w.servers[strings.TrimPrefix(p.Issuer, "https://")]
	if as == nil {
		return "", fmt.Errorf("no authorization server %q", p.Issuer)
	}
	back, err := as.Consent(ctx, p.AuthorizeURL)
	if err != nil {
		return "", err
	}
	return back.String(), nil
}

// callable makes one request with the account's grant.
func (w *world) callable(p *process, t Target) error {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, t.Server.URL, strings.NewReader(`{}`))
	if err != nil {
		return err
	}
	if err := p.e.Authorize(w.t.Context(), t.Account, &t.Server, req); err != nil {
		return err
	}
	resp, err := w.net.RoundTrip(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	return nil
}
