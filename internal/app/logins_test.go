package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
	"github.com/usher-mcp/usher/vault"
)

// An agent whose session began before a login hears of the tools that the login made
// visible, whichever process the person logged in with.
func TestLoginIsHeardByAgents(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		as := fake.NewAuth(nil)
		_, stop, err := as.Listen()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{protected(t, "notes", as)}}
		store := vault.NewMemory()
		h := openedOn(t, store, cfg)
		by := h
		if elsewhere {
			by = openedOn(t, store, cfg)
		}
		view, agent := h.Frontend().Surface().Direct(), surface.Agent{Version: mcp.Latest}
		tools := func() string {
			raw, err := view.Do(t.Context(), agent, mcp.Request{Method: mcp.MethodToolsList, Params: []byte(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		if got := tools(); strings.Contains(got, "notes") {
			t.Fatalf("before the login: %s", got)
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Minute)
		heard, ready, over := make(chan mcp.Message, 10), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			_ = view.Listen(ctx, agent, surface.Subscription{Tools: true, Ready: func() { close(ready) }}, func(m mcp.Message) { heard <- m })
		}()
		<-ready
		login(t, by, as, cfg.Servers[0])
		for seen := false; !seen && ctx.Err() == nil; { // the first word may be of what was before
			select {
			case m := <-heard:
				seen = m.Method == mcp.MethodNotifyTools && strings.Contains(tools(), "notes")
			case <-ctx.Done():
				t.Errorf("elsewhere %v: it was not heard", elsewhere)
			}
		}
		leave()
		<-over
	}
}

// login logs the default account of a server in, as a person with a browser would.
func login(t *testing.T, h *App, as *fake.AuthServer, srv config.Server) {
	t.Helper()
	consent := auth.NewInteractive(func(ctx context.Context, page string) error {
		back, err := as.Consent(ctx, page)
		if err == nil {
			visitPage(t, back.String())
		}
		return err
	})
	if _, err := h.Auth().Browser(t.Context(), consent, h.Logins().DefaultAccount(srv.Name), srv, nil, nil); err != nil {
		t.Fatal(err)
	}
}
