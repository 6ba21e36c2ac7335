package inspect

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/status"
	"github.com/usher-mcp/usher/vault"
)

// protected serves a fake behind a login and returns its address.
func protected(t *testing.T, as *fake.AuthServer) string {
	t.Helper()
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	notes := fake.New(&fake.Options{Name: "notes"})
	p := &fake.Protected{}
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		as.Protect(p, notes.Handler()).ServeHTTP(w, r)
	}))
	p.Resource = hs.URL + "/mcp"
	t.Cleanup(func() {
		notes.Close()
		hs.Close()
	})
	return p.Resource
}

// looking is a factory over a store, with the given servers.
func looking(t *testing.T, store vault.Store, servers ...config.Server) (*cmdutil.Factory, *app.App) {
	t.Helper()
	home := t.TempDir()
	system := config.System{Home: home, Workdir: home, LookupEnv: func(name string) (string, bool) { return home, name == "USHER_HOME" }}
	cfg := &config.Config{Servers: servers}
	h, err := app.Open(t.Context(), &app.Options{Config: cfg, Store: store, Load: config.LoadOptions{System: system}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	var out bytes.Buffer
	return &cmdutil.Factory{IO: cmdutil.IO{Out: &out, Err: &out, System: system}, Cfg: cfg, Opened: h}, h
}

// authStates are the rows of a board and where their logins stand.
func authStates(t *testing.T, f *cmdutil.Factory, h *app.App) (map[string]string, statusBoard) {
	t.Helper()
	b, err := board(t.Context(), f, h, "")
	if err != nil || len(b.problems) > 0 {
		t.Fatal(err, b.problems)
	}
	out := map[string]string{}
	for _, s := range b.Servers {
		out[s.AccountName()] = status.Word(s.State) + ", " + s.Auth.State
	}
	return out, b
}

// TestStatusShowsLogins follows two accounts of a server from nothing to a login,
// and on until the server is not configured any more.
func TestStatusShowsLogins(t *testing.T) {
	as := fake.NewAuth(nil)
	store := vault.NewMemory()
	srv := config.Server{Name: "notes", Transport: config.TransportHTTP, URL: protected(t, as)}.WithDefaults()
	f, h := looking(t, store, srv)
	got, _ := authStates(t, f, h)
	if diff := cmp.Diff(map[string]string{"notes": "idle, none"}, got); diff != "" {
		t.Errorf("at first (-want +got)\n%s", diff)
	}

	var begun []*auth.Pending
	for _, account := range []string{"notes", "notes@work"} {
		p, err := h.Auth().Begin(t.Context(), auth.ParseAccount("local", account), srv, &auth.LoginOptions{Redirect: "http://127.0.0.1:1/callback"})
		if err != nil {
			t.Fatal(err)
		}
		begun = append(begun, p)
	}
	got, b := authStates(t, f, h)
	if diff := cmp.Diff(map[string]string{"notes": "idle, pending", "notes@work": "idle, pending"}, got); diff != "" {
		t.Errorf("begun (-want +got)\n%s", diff)
	}
	foot := strings.Join(b.footnotes(time.Now().Add(4*time.Minute)), "\n")
	if want := "1 login waiting: notes@work (started 4 min ago) – finish it: usher login notes@work"; !strings.Contains(foot, want) {
		t.Errorf("footnotes %q, want %q", foot, want)
	}

	back, err := as.Consent(t.Context(), begun[1].AuthorizeURL)
	if err != nil {
		t.Fatal(err)
	}
	cb, err := oauth.ReadCallback(back.Query())
	if err == nil {
		_, err = h.Auth().Complete(t.Context(), cb)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, b = authStates(t, f, h)
	if diff := cmp.Diff(map[string]string{"notes": "idle, pending", "notes@work": "idle, ok"}, got); diff != "" {
		t.Errorf("logged in (-want +got)\n%s", diff)
	}
	if len(b.Waiting) != 1 || b.Waiting[0].Account != "notes" || len(b.Orphans) != 0 {
		t.Errorf("waiting %v, orphans %v", b.Waiting, b.Orphans)
	}

	f, h = looking(t, store)
	_, b = authStates(t, f, h)
	if diff := cmp.Diff([]string{"notes@work"}, b.Orphans); diff != "" {
		t.Errorf("not configured any more (-want +got)\n%s", diff)
	}
	if foot := strings.Join(b.footnotes(time.Now()), "\n"); !strings.Contains(foot, "usher logout notes@work") {
		t.Errorf("footnotes %q", foot)
	}
	if w := b.Waiting; len(w) != 1 || w[0].Account != "notes" || !w[0].Removed || w[0].Command != "usher auth prune" {
		t.Errorf("a pending login of a removed server: %+v", w)
	}
}

// TestDoctorLooksAtTheLogin wants the token of a login told, and a login that is
// needed with what it would do.
func TestDoctorLooksAtTheLogin(t *testing.T) {
	as := fake.NewAuth(nil)
	srv := config.Server{Name: "notes", Transport: config.TransportHTTP, URL: protected(t, as)}.WithDefaults()
	f, h := looking(t, vault.NewMemory(), srv)
	x := &examiner{factory: f, host: h}
	d := x.examine(t.Context(), srv)
	if !d.has(checkWaiting) || d.has(checkProblem) {
		t.Errorf("without a login: %+v", d.Checks)
	}
	want := map[string]string{"discovery": "protected resource → issuer " + as.Issuer(), "registration": "registers itself"}
	for _, c := range d.Checks {
		if w, ok := want[c.Name]; ok && c.Detail != w {
			t.Errorf("%s: %q, want %q", c.Name, c.Detail, w)
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing %v in %+v", want, d.Checks)
	}

	p, err := h.Auth().Begin(t.Context(), h.Logins().DefaultAccount("notes"), srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := as.Consent(t.Context(), p.AuthorizeURL)
	if err != nil {
		t.Fatal(err)
	}
	cb, err := oauth.ReadCallback(back.Query())
	if err == nil {
		_, err = h.Auth().Complete(t.Context(), cb)
	}
	if err == nil {
		err = h.Logins().Reconnect(t.Context(), h.Logins().DefaultAccount("notes"))
	}
	if err != nil {
		t.Fatal(err)
	}
	d = x.examine(t.Context(), srv)
	told := ""
	for _, c := range d.Checks {
		if c.Name == "token" {
			told = c.Status + ": " + c.Detail
		}
	}
	if d.has(checkWaiting) || d.has(checkProblem) || !strings.HasPrefix(told, "ok: lasts ") || !strings.HasSuffix(told, ", refreshes") {
		t.Errorf("with a login %q: %+v", told, d.Checks)
	}
}
