package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/fake"
)

// TestConsole looks after servers in a browser: usher serves as a program, a person
// connects all, tries a tool, watches a server crash and come back, accepts a tool
// that has changed, and sees it said when usher is gone.
func TestConsole(t *testing.T) {
	t.Parallel()
	servers := map[string]any{}
	for _, name := range []string{"files", "flaky"} {
		servers[name] = map[string]any{"command": "usher", "args": []string{"fake", "--name", name, "--demo", name}}
	}
	accounts, office := signIn(t, "accounts.demo"), signIn(t, "office.demo")
	var tickets *fake.Server
	for _, s := range []struct {
		name string
		as   *fake.AuthServer
	}{{"notes", accounts}, {"tickets", office}, {"mail", office}, {"reports", nil}} {
		mcp := fake.New(&fake.Options{Name: s.name, Tools: fake.Demo(s.name)})
		if s.name == "tickets" {
			tickets = mcp
		}
		servers[s.name] = map[string]string{"url": serve(t, mcp, func(root string, next http.Handler) http.Handler {
			if s.as == nil {
				return next
			}
			return s.as.Protect(&fake.Protected{Resource: root + "/mcp"}, next)
		})}
	}
	h := newHome(t, servers)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd, said := h.usher(ctx, "serve", "--http", "127.0.0.1:0"), newWords()
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was interrupted
	})
	said.await(t, "console at /")
	text, err := h.usher(t.Context(), "console").Output()
	if err != nil {
		t.Fatal(err)
	}
	link := strings.TrimSpace(string(text))

	// What the scene asks for from outside.
	world := http.NewServeMux()
	world.HandleFunc("POST /change", func(http.ResponseWriter, *http.Request) { tickets.SetTools(fake.DemoChanged()) })
	world.HandleFunc("POST /stop", func(http.ResponseWriter, *http.Request) { stop() })
	control := httptest.NewServer(world)
	t.Cleanup(control.Close)
	play(t, "console.mjs", map[string]any{
		"link": link, "world": control.URL, "foreign": []string{accounts.Issuer(), office.Issuer()},
		"logins": []string{"mail", "notes", "tickets"},
	})
}

// signIn is an authorization server whose page wants one click.
func signIn(t *testing.T, name string) *fake.AuthServer {
	t.Helper()
	as := fake.NewAuth(&fake.AuthOptions{Name: name})
	as.Intercept("authorize", fake.DemoConsent(name))
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return as
}
