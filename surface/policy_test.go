package surface

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
	"github.com/usher-mcp/usher/upstream"
)

// TestChangedToolsAreNotShown wants the text of a tool that was changed behind our
// back to reach no model, and the other tools to stay.
func TestChangedToolsAreNotShown(t *testing.T) {
	srv, fk := serve(t, "s", fake.Options{Versions: modernOnly, Tools: []fake.Tool{simple("s", "a", "harmless"), simple("s", "b", "harmless")}})
	w := start(t, []config.Server{srv}, options{}, nil)
	single := single1(t, w, "s")
	do(t, w.Direct(), modernAgent, mcp.MethodToolsList, `{}`)
	awaitHearing(t, fk)
	fk.SetTools([]fake.Tool{simple("s", "a", "<IMPORTANT>"), simple("s", "b", "harmless")})
	waitForList(t, w, []string{"s__b"})
	for _, list := range []string{do(t, w.Direct(), modernAgent, mcp.MethodToolsList, `{}`), do(t, single, modernAgent, mcp.MethodToolsList, `{}`)} {
		if strings.Contains(list, "IMPORTANT") || !strings.Contains(list, `b"`) {
			t.Errorf("shown: %s", list)
		}
	}
	for _, action := range []string{"describe_tool", "call"} {
		got, failed := text(do(t, w.Meta(), modernAgent, mcp.MethodToolsCall, `{"name":"mcp","arguments":{"action":"`+action+`","server":"s","tool":"a"}}`))
		if !failed || !strings.Contains(got, "person has to review it") || strings.Contains(got, "usher ") || strings.Contains(got, "IMPORTANT") {
			t.Errorf("%s: %s", action, got)
		}
	}
	if got, _ := text(do(t, w.Meta(), modernAgent, mcp.MethodToolsCall, `{"name":"mcp","arguments":{"action":"search","query":"important"}}`)); !strings.Contains(got, "No tool fits") {
		t.Errorf("found: %s", got)
	}
	if _, err := try(t, single, modernAgent, mcp.MethodToolsCall, `{"name":"a"}`); !errors.Is(err, policy.ErrSchemaChanged) || w.Explain(err).Kind != KindChanged {
		t.Errorf("called: %v", err)
	}
}

// TestSilentChangesAreNotShown wants the text of a tool that a server changed
// without a word not to pass on a page before it was compared with its pin.
func TestSilentChangesAreNotShown(t *testing.T) {
	srv, fk := serve(t, "s", fake.Options{Versions: modernOnly})
	w := start(t, []config.Server{srv}, options{}, nil)
	v := single1(t, w, "s")
	before := do(t, v, modernAgent, mcp.MethodToolsList, `{}`)
	awaitHearing(t, fk)
	fk.Set("poison")
	after := do(t, v, modernAgent, mcp.MethodToolsList, `{}`)
	if strings.Contains(after, "IMPORTANT") {
		t.Errorf("shown: %s", after)
	}
	if diff := cmp.Diff(names(before, "tools", "name"), names(after, "tools", "name")); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}

// accounts notes for which account each call is authorized.
type accounts struct {
	mu   sync.Mutex // guards seen
	seen []string
}

func (a *accounts) Authorize(_ context.Context, k host.Key, _ *config.Server, r *http.Request) error {
	if r.Header.Get(wire.HeaderMethod) != mcp.MethodToolsCall {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, k.Principal+" "+naming.Label(k.Server, k.Account))
	return nil
}

func (a *accounts) Refused(context.Context, host.Key, config.Server, *upstream.UnauthorizedError) error {
	return nil
}

func (a *accounts) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := slices.Compact(sorted(a.seen))
	a.seen = nil
	return seen
}

// TestAccountsStandSideBySide wants each account of a server under names of its own
// and used for them only, and each principal to use its own.
func TestAccountsStandSideBySide(t *testing.T) {
	srv, _ := serve(t, "s", fake.Options{Versions: modernOnly, Tools: []fake.Tool{simple("s", "a", "")}})
	auth := &accounts{}
	w := start(t, []config.Server{srv}, options{}, func(_ *config.Config, o *host.Options) { o.Auth = auth })
	w.accounts["s"] = []string{"work"}
	other := Agent{Principal: "eve", Version: mcp.V20260728}
	got := names(do(t, w.Direct(), modernAgent, mcp.MethodToolsList, `{}`), "tools", "name")
	if diff := cmp.Diff([]string{"s__a", "s--work__a"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	auth.take()
	work := w.view(t, modernAgent, "s@work")
	for _, tt := range []struct {
		name  string
		view  View
		agent Agent
		call  string
		want  string
	}{
		{"default", w.Direct(), modernAgent, `{"name":"s__a"}`, "local s"},
		{"labelled", w.Direct(), modernAgent, `{"name":"s--work__a"}`, "local s@work"},
		{"labelled alone", work, modernAgent, `{"name":"a"}`, "local s@work"},
		{"labelled by the one tool", w.Meta(), modernAgent, `{"name":"mcp","arguments":{"action":"call","server":"s@work","tool":"a"}}`, "local s@work"},
		{"of another principal", work, other, `{"name":"a"}`, "eve s@work"},
	} {
		do(t, tt.view, tt.agent, mcp.MethodToolsCall, tt.call)
		if diff := cmp.Diff([]string{tt.want}, auth.take()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// TestRootsAreTold wants the servers of a session, and no others, to hear that its
// roots have changed.
func TestRootsAreTold(t *testing.T) {
	srv, fk := serve(t, "s", fake.Options{Versions: legacyOnly})
	w := start(t, []config.Server{srv}, options{}, nil)
	v := single1(t, w, "s")
	agent := legacyAgent
	agent.Capabilities = []byte(`{"roots":{"listChanged":true}}`)
	do(t, v, agent, mcp.MethodToolsCall, `{"name":"echo"}`)
	if err := v.Notify(t.Context(), agent, mcp.MethodNotifyRoots, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := fk.Ledger().WaitFor(ctx, func(e fake.Entry) bool { return e.Method == mcp.MethodNotifyRoots }); err != nil {
		t.Error(err)
	}
	if err := v.Notify(t.Context(), Agent{}, mcp.MethodNotifyRoots, nil); err != nil {
		t.Errorf("without a session: %v", err)
	}
	v.Close(agent)
	for _, s := range w.host.Status().Servers {
		if s.Lane != "" {
			t.Errorf("the connection of lane %s is left", s.Lane)
		}
	}
}

// TestLoginTool wants the login tool of the direct view to answer at once and never
// to be a server's.
func TestLoginTool(t *testing.T) {
	l := &logins{}
	w := twoServers(t, options{Logins: l}, nil)
	for _, tt := range []struct{ args, want string }{
		{`{"server":"alpha"}`, "https://example.com/authorize"},
		{`{}`, "Servers: alpha, beta."},
		{`{"server":"alpha","redirect_url":"http://x/?code=1"}`, "Logged in"},
		{`{"server":"alfa"}`, "did you mean alpha"},
	} {
		got, _ := text(do(t, w.Direct(), legacyAgent, mcp.MethodToolsCall, `{"name":"login","arguments":`+tt.args+`}`))
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", tt.args, got)
		}
	}
	if diff := cmp.Diff([]string{"alpha"}, l.begun); diff != "" {
		t.Errorf("begun (-want +got)\n%s", diff)
	}
	for flow, want := range map[string]string{"device": "enter the code **ABCD**", "paste": "complete_login", "browser": "open [this link]"} {
		if got := loginText(Login{Server: "s", Flow: flow, State: "pending", URL: "https://x", Code: "ABCD", Handle: "h"}, "s", &metaHints); !strings.Contains(got, want) || !strings.Contains(got, "handle: `h`") {
			t.Errorf("%s: %s", flow, got)
		}
	}
	if got := loginText(Login{State: "failed", Reason: "refused"}, "s", &metaHints); !strings.Contains(got, "refused") {
		t.Error(got)
	}
}

// A login that a call needs is started only where the profile of the endpoint has the
// server as a whole, as with the login tool.
func TestLoginOfAProfileOfTools(t *testing.T) {
	l := &logins{}
	w := twoServers(t, options{Logins: l, Options: Options{Profiles: map[string]Profile{
		"tools": {Tools: []string{"alpha/echo"}}, "whole": {Servers: []string{"alpha"}},
	}}}, nil)
	for name, want := range map[string]bool{"tools": false, "whole": true} {
		l.begun = nil
		v, err := w.Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.BeginLogin(t.Context(), v, legacyAgent, "alpha"); (err == nil) != want || len(l.begun) == 1 != want {
			t.Errorf("%s: %v, begun %v", name, err, l.begun)
		}
		if got := w.LoginPending(t.Context(), v, legacyAgent, "alpha"); got != want {
			t.Errorf("%s: pending is %v", name, got)
		}
	}
}
