package console

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/status"
	"github.com/usher-mcp/usher/surface"
)

// scene is a world that is what a test says, and remembers what was done to it.
type scene struct {
	bus event.Bus[event.Event]

	mu       sync.Mutex // guards what follows
	servers  []Server
	logs     []LogLine
	tools    []Tool
	calls    []Call
	pins     []Pin
	budgets  []policy.BudgetStatus
	accounts []auth.Status
	driver   LoginDriver
	did      []string
	fails    error
	call     func(ctx context.Context, arguments []byte) ([]byte, error)
}

func (s *scene) note(what ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, strings.Join(what, " "))
	return s.fails
}

func (s *scene) done() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.did...)
}

// set changes the scene and tells so.
func (s *scene) set(change func(*scene)) {
	s.mu.Lock()
	change(s)
	s.mu.Unlock()
	s.bus.Publish(event.ServerChanged{})
}

func (s *scene) Servers(context.Context) []Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Server{}, s.servers...)
}

func (s *scene) Logs(string, int) []LogLine                   { return s.logs }
func (s *scene) Tools(context.Context) ([]Tool, error)        { return s.tools, nil }
func (s *scene) List(_ context.Context, account string) error { return s.note("list", account) }

func (s *scene) Call(ctx context.Context, account, tool string, arguments []byte) ([]byte, error) {
	_ = s.note("call", account, tool, string(arguments))
	return s.call(ctx, arguments)
}

func (s *scene) Explain(err error) surface.Problem {
	return surface.Problem{Text: err.Error(), Next: "usher doctor"}
}

func (s *scene) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call{}, s.calls...)
}

func (s *scene) Pins(context.Context) ([]Pin, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pins, nil
}

func (s *scene) Accept(_ context.Context, server, tool, hash string) error {
	return s.note("accept", server, tool, hash)
}

func (s *scene) Budgets() []policy.BudgetStatus                  { return s.budgets }
func (s *scene) Accounts(context.Context) ([]auth.Status, error) { return s.accounts, nil }
func (s *scene) Login(account string) error                      { return s.note("login", account) }
func (s *scene) Logins() LoginDriver                             { return s.driver }
func (s *scene) Logout(_ context.Context, a string) error        { return s.note("logout", a) }
func (s *scene) Reload(_ context.Context, server string) error   { return s.note("reload", server) }
func (s *scene) Stop(server string) error                        { return s.note("stop", server) }

func (s *scene) Subscribe() *event.Subscription[event.Event] { return s.bus.Subscribe(0) }

// visitor is a browser that was let in.
type visitor struct {
	t      *testing.T
	c      *Console
	cookie *http.Cookie
}

// newConsole closes the console with the test.
func newConsole(t *testing.T, s *scene, o *Options) *Console {
	t.Helper()
	c := New(s, o)
	t.Cleanup(c.Close)
	return c
}

func visit(t *testing.T, c *Console) *visitor {
	t.Helper()
	r := ask(c, strings.TrimPrefix(c.Link(), c.opt.Base), nil)
	if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 {
		t.Fatalf("HTTP %d, cookies %v", r.StatusCode, r.Cookies())
	}
	return &visitor{t, c, r.Cookies()[0]}
}

// get looks at a page.
func (v *visitor) get(path string) (status int, page string) {
	v.t.Helper()
	r := ask(v.c, path, func(r *http.Request) { r.AddCookie(v.cookie) })
	return r.StatusCode, body(v.t, r)
}

var tokenField = regexp.MustCompile(`name="csrf" value="([A-Z2-7]+)"`)

// token is what the forms of this browser carry.
func (v *visitor) token() string {
	v.t.Helper()
	_, page := v.get("/")
	m := tokenField.FindStringSubmatch(page)
	if m == nil {
		v.t.Fatal("no form has a token")
	}
	return m[1]
}

// post sends a form as a browser does. Edit may change it.
func (v *visitor) post(path string, form url.Values, edit func(*http.Request)) *http.Response {
	v.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	if !form.Has("csrf") {
		form.Set("csrf", v.token())
	}
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:7331"+path, strings.NewReader(form.Encode()))
	r.RemoteAddr = "127.0.0.1:50000"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://127.0.0.1:7331")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.AddCookie(v.cookie)
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	v.c.ServeHTTP(w, r)
	return w.Result()
}

var errScene = errors.New("it is <b>broken</b>")

// row is a server in a state.
func row(name string, state host.State) Server {
	return Server{Server: status.Server{ServerStatus: host.ServerStatus{Name: name, State: state}}}
}

// hostile is a scene full of foreign text that tries to be markup.
func hostile() *scene {
	const name = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`
	const evil = name + "\u202e\x1b[31m"
	now := time.Now()
	return &scene{
		servers: []Server{{
			Server: status.Server{ServerStatus: host.ServerStatus{
				Name: name, State: host.Failed, Transport: "stdio", LastError: evil, Circuit: "open", ConsecutiveFailures: 5,
				Auth: host.AuthStatus{State: host.AuthNeedsLogin, Reason: evil},
			}},
			Where: evil, History: []Moment{{now, host.Disconnected, host.Failed, evil}},
			Latency: []Second{{Calls: 2, Failed: 1, Worst: time.Second}},
		}, row("needy", host.NeedsAuth)},
		logs:     []LogLine{{now, evil}},
		tools:    []Tool{{Account: name, Name: name, Definition: []byte(`{"description":"\u003cscript>alert(1)\u003c/script>","inputSchema":{"type":"object","properties":{"\"><img src=x>":{"type":"string","description":"<b>","enum":["<i>"]}}}}`)}},
		calls:    []Call{{Number: 1, Account: name, Tool: evil, Outcome: "error", Failed: true, Began: now, Problem: evil, Arguments: evil}},
		pins:     []Pin{{Server: name, Tool: name, Hash: "abc", Hidden: []string{evil}, Changes: []Change{{name, "changed", []DiffLine{{"-", name}, {"+", name}}}}}},
		budgets:  []policy.BudgetStatus{{Server: name, Run: 1, RunLimit: 2}},
		accounts: []auth.Status{{Account: auth.Account{Server: name}, State: auth.StateOK, Issuer: evil, Scopes: []string{evil}, Reason: evil, Trouble: evil}},
		call: func(context.Context, []byte) ([]byte, error) {
			return []byte(`{"content":[{"type":"text","text":"<script>"}]}`), nil
		},
	}
}

func discardBody(r *http.Response) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
}
