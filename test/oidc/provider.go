package oidc

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/test/need"
)

// event is what the authorization server prints.
type event struct {
	Event   string `json:"event"`
	Issuer  string `json:"issuer"`
	Client  string `json:"client"`
	Grant   string `json:"grant"`
	Refresh string `json:"refresh"`
	Error   string `json:"error"`
	Detail  string `json:"detail"`
}

// Provider is a running authorization server.
type Provider struct {
	Issuer string

	mu     sync.Mutex // guards events, closed, news
	events []event
	closed bool
	news   chan struct{} // closed and replaced whenever the others change
}

// Start runs oidc-provider until the test ends. Any login and password are good there.
func Start(t *testing.T) *Provider {
	t.Helper()
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(need.Node(t), filepath.Join(root, "test", "oidc", "provider.mjs"), need.Package(t, "oidc-provider"), "0")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Provider{news: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() { p.read(bufio.NewScanner(out)) })
	t.Cleanup(func() {
		_ = in.Close() // it ends with its input
		wg.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the authorization server ended with %v", err)
		}
		for _, e := range p.all("broken", "") {
			t.Errorf("the authorization server broke: %s", e.Error)
		}
	})
	p.Issuer = p.await(t, "listening", "").Issuer
	return p
}

// read keeps what the server prints; lines that are not JSON are its advice.
func (p *Provider) read(lines *bufio.Scanner) {
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Event != "" {
			p.change(func() { p.events = append(p.events, e) })
		}
	}
	p.change(func() { p.closed = true })
}

func (p *Provider) change(how func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	how()
	close(p.news)
	p.news = make(chan struct{})
}

// all returns the events of a name that concern a client, or any client if empty.
func (p *Provider) all(name, client string) []event {
	found, _, _ := p.look(name, client)
	return found
}

func (p *Provider) look(name, client string) (found []event, closed bool, news <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Event == name && (client == "" || e.Client == client) {
			found = append(found, e)
		}
	}
	return found, p.closed, p.news
}

// patience is how long a test waits for the server to say something.
const patience = time.Minute

// await waits for the first such event.
func (p *Provider) await(t *testing.T, name, client string) event {
	t.Helper()
	return awaitCount(t, p, 1, func() []event { return p.all(name, client) })[0]
}

// awaitCount waits until what list makes of the events has n entries.
func awaitCount[T any](t *testing.T, p *Provider, n int, list func() []T) []T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		_, closed, news := p.look("", "")
		got := list()
		if len(got) >= n {
			return got
		}
		if closed {
			t.Fatal("the authorization server ended")
		}
		select {
		case <-news:
		case <-ctx.Done():
			t.Fatalf("the authorization server did not say what was awaited: %d of %d", len(got), n)
		}
	}
}

// Verdict is what the server says about a token (RFC 7662).
type Verdict struct {
	Active   bool   `json:"active"`
	Client   string `json:"client_id"`
	Scope    string `json:"scope"`
	Audience string `json:"aud"`
	Subject  string `json:"sub"`
}

// Introspect asks the server about a token, as the MCP server it is meant for.
func (p *Provider) Introspect(ctx context.Context, c *http.Client, token string) (Verdict, error) {
	var v Verdict
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.Issuer+"/token/introspection", strings.NewReader(url.Values{"token": {token}}.Encode()))
	if err != nil {
		return v, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("mcp-server", "mcp-server-secret")
	resp, err := c.Do(req)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	return v, json.NewDecoder(resp.Body).Decode(&v)
}

// post sends a form to the server as the public client of that id, and returns the
// status and the OAuth error code, if there is one.
func (p *Provider) post(t *testing.T, c *http.Client, path, client string, form url.Values) (int, string) {
	t.Helper()
	form.Set("client_id", client)
	resp, err := c.PostForm(p.Issuer+path, form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Error string `json:"error"`
	}
	_ = json.NewDecoder(resp.Body).Decode(&answer) // a revocation has no body
	return resp.StatusCode, answer.Error
}
