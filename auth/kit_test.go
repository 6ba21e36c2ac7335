package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(childJob); job != "" {
		os.Exit(runChild(job))
	}
	goleak.VerifyTestMain(m)
}

// Times and counts of package grants that these tests rely on.
const (
	softWait     = 2 * time.Second
	storeWait    = time.Second
	refreshLease = 6 * time.Second
	renewLimit   = 2 * time.Minute
	maxBackoff   = 5 * time.Minute
	verdictLife  = 5 * time.Minute
	maxStepUps   = 2
)

// wires is a network in memory: handlers by host. It works inside a bubble.
type wires struct {
	mu    sync.Mutex // guards hosts, seen
	hosts map[string]http.Handler
	seen  []string // host and path of every request
}

func (n *wires) add(host string, h http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts == nil {
		n.hosts = map[string]http.Handler{}
	}
	n.hosts[host] = h
}

// reached counts the requests to a host.
func (n *wires) reached(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, s := range n.seen {
		if strings.HasPrefix(s, host+"/") {
			count++
		}
	}
	return count
}

var errNoHost = errors.New("no such host")

func (n *wires) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	h := n.hosts[req.URL.Host]
	n.seen = append(n.seen, req.URL.Host+req.URL.Path)
	n.mu.Unlock()
	if h == nil {
		return nil, errNoHost
	}
	in := req.Clone(req.Context())
	in.Body = http.NoBody
	if req.Body != nil { // a network takes the whole request before anybody answers
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		in.Body = io.NopCloser(bytes.NewReader(body))
	}
	in.RequestURI, in.Host = req.URL.RequestURI(), req.URL.Host
	rec := httptest.NewRecorder()
	aborted := make(chan bool, 1)
	go func() {
		defer func() { aborted <- recover() != nil }()
		h.ServeHTTP(rec, in)
	}()
	select {
	case bad := <-aborted:
		if bad {
			return nil, io.EOF
		}
	case <-req.Context().Done():
		<-aborted // the handler sees the same context
		return nil, req.Context().Err()
	}
	resp := rec.Result()
	resp.Request = req
	return resp, nil
}

const (
	asHost  = "as.example"
	mcpHost = "mcp.example"
	mcpURL  = "https://mcp.example/mcp"
)

// world is an authorization server, a resource it protects, and an engine.
type world struct {
	t      *testing.T
	net    *wires
	as     *fake.AuthServer
	prot   *fake.Protected
	store  vault.Store
	e      *Engine
	srv    config.Server
	a      Account
	client *http.Client
}

func newWorld(t *testing.T, as *fake.AuthOptions, prot *fake.Protected) *world {
	t.Helper()
	w := &world{t: t, net: &wires{}, as: fake.NewAuth(as), prot: prot, store: vault.NewMemory(), a: Account{Server: "srv"}}
	if w.prot == nil {
		w.prot = &fake.Protected{}
	}
	w.prot.Resource = mcpURL
	w.as.Serve("https://" + asHost)
	w.net.add(asHost, w.as.Handler())
	w.net.add(mcpHost, w.as.Protect(w.prot, okHandler))
	w.e = New(w.store, &Options{RoundTripper: w.net})
	w.client = &http.Client{Transport: w.e.Transport(w.net)}
	w.srv = config.Server{Name: "srv", Transport: config.TransportHTTP, URL: mcpURL, OAuth: &config.OAuth{}}
	t.Cleanup(func() {
		_ = w.e.Close()
		_ = w.store.Close()
	})
	return w
}

var okHandler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })

// login goes through the browser flow and hands the answer back.
func (w *world) login() *Login {
	w.t.Helper()
	l, err := w.tryLogin(nil)
	if err != nil {
		w.t.Fatalf("login: %v", err)
	}
	return l
}

func (w *world) tryLogin(opt *LoginOptions) (*Login, error) {
	p, err := w.e.Begin(w.t.Context(), w.a, w.srv, opt)
	if err != nil {
		return nil, err
	}
	return w.consent(p)
}

func (w *world) consent(p *Pending) (*Login, error) {
	w.t.Helper()
	return w.e.Complete(w.t.Context(), w.answer(p))
}

// answer is what the provider sends back when the person agrees.
func (w *world) answer(p *Pending) Callback {
	w.t.Helper()
	back, err := w.as.Consent(w.t.Context(), p.AuthorizeURL)
	if err != nil {
		w.t.Fatal(err)
	}
	cb, err := oauth.ReadCallback(back.Query())
	if err != nil {
		w.t.Fatal(err)
	}
	return cb
}

// call makes one request as a host does: once more if Refused says so.
func (w *world) call(ctx context.Context) error {
	return callAs(ctx, w.e, w.client, w.a, w.srv)
}

func callAs(ctx context.Context, e *Engine, client *http.Client, a Account, srv config.Server) error {
	for try := 0; ; try++ {
		body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, body)
		if err != nil {
			return err
		}
		if err := e.Authorize(ctx, a, &srv, req); err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode < 300 {
			return nil
		}
		if try == 1 || resp.StatusCode != http.StatusUnauthorized && oauth.ParseChallenge(resp).Error == "" {
			return fmt.Errorf("HTTP %d", resp.StatusCode)
		}
		if err := e.Refused(ctx, a, srv, oauth.ParseChallenge(resp)); err != nil {
			return err
		}
	}
}

// mustCall fails the test if the call does.
func (w *world) mustCall() {
	w.t.Helper()
	if err := w.call(w.t.Context()); err != nil {
		w.t.Fatalf("call: %v", err)
	}
}

// tokens counts the token requests of a grant type.
func (w *world) tokens(grant string) int { return len(w.as.Requests(fake.EventToken, grant)) }

// grant reads the stored grant.
func (w *world) grant() *grants.Grant {
	w.t.Helper()
	g, err := w.e.grants.Grants.Load(w.t.Context(), w.a)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

// failuresKey is the key of the record of failed refreshes.
func (w *world) failuresKey() vault.Key {
	k := w.a.Key(vault.KindStep)
	k.Name = "renew " + k.Name
	return k
}

// edit changes the stored grant, as time or another process would.
func (w *world) edit(change func(*grants.Grant)) {
	w.t.Helper()
	g := w.grant()
	change(g)
	data, err := g.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.store.Put(w.t.Context(), w.a.Key(vault.KindGrant), data, g.Version); err != nil {
		w.t.Fatal(err)
	}
	w.e.grants.Grants.Remember(w.a.Normal(), g)
}

func mustURL(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// wantErr checks an error by identity and by what its text says.
func wantErr(t *testing.T, err, is error, says ...string) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Fatalf("error %v, want %v", err, is)
	}
	text := err.Error()
	if need, ok := errors.AsType[*NeedsLoginError](err); ok {
		text += "\n" + need.Command
	}
	for _, s := range says {
		if !strings.Contains(text, s) {
			t.Errorf("error %q does not say %q", text, s)
		}
	}
}
