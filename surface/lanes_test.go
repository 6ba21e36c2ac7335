package surface

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// TestOwnEra wants a server of both eras to be spoken to in the era of the agent,
// and what is remembered of it to stay the newer one.
func TestOwnEra(t *testing.T) {
	srv, fk := serve(t, "s", fake.Options{})
	kept := &memory{}
	w := start(t, []config.Server{srv}, options{}, func(_ *config.Config, o *host.Options) { o.Memory = kept })
	v := single1(t, w, "s")
	do(t, v, modernAgent, mcp.MethodToolsList, `{}`)
	able := legacyAgent
	able.Capabilities = []byte(`{"elicitation":{}}`)
	do(t, v, able, mcp.MethodToolsCall, `{"name":"echo","arguments":{"from":"older"}}`)
	do(t, v, modernAgent, mcp.MethodToolsCall, `{"name":"echo","arguments":{"from":"modern"}}`)
	for _, call := range fk.Ledger().Calls("echo") {
		modern := strings.Contains(string(call.Params), mcp.MetaVersion)
		if want := strings.Contains(string(call.Params), `"modern"`); modern != want {
			t.Errorf("modern is %v: %s", modern, call.Params)
		}
	}
	if n := len(fk.Ledger().Calls("echo")); n != 2 {
		t.Errorf("%d calls arrived", n)
	}
	k := policy.Key{Principal: local, Server: "s", Lane: able.Lane}
	if c, err := w.host.Tools(t.Context(), k); err != nil || c.Version != able.Version {
		t.Errorf("the session speaks %q, %v", c.Version, err)
	}
	if c, _ := kept.Tools(t.Context(), k, ""); c.Version != mcp.V20260728 {
		t.Errorf("it is remembered to speak %q", c.Version)
	}
}

// TestNoOlderEra wants a server without an older era to be asked for it once, and
// again only after it was restarted.
func TestNoOlderEra(t *testing.T) {
	srv, fk := serve(t, "s", fake.Options{Versions: modernOnly})
	w := start(t, []config.Server{srv}, options{}, nil)
	v := single1(t, w, "s")
	session := func(name string) {
		t.Helper()
		a := Agent{Version: mcp.V20251125, Lane: name, Capabilities: []byte(`{"elicitation":{}}`)}
		for range 2 {
			do(t, v, a, mcp.MethodToolsCall, `{"name":"echo"}`)
		}
	}
	for i := range 3 {
		session(fmt.Sprint("lane-", i))
	}
	if n := fk.Ledger().Count(mcp.MethodInitialize); n != 1 {
		t.Errorf("it was asked for the older era %d times", n)
	}
	if err := w.host.Reload(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	session("late")
	if n := fk.Ledger().Count(mcp.MethodInitialize); n != 2 {
		t.Errorf("after a restart it was asked %d times in all", n)
	}
}

// TestSessionIsRestored wants a server to learn the agent's log level and its
// subscriptions again when it has lost them, however that came.
func TestSessionIsRestored(t *testing.T) {
	for name, lose := range map[string]func(*rig, *fake.Server) error{
		"a new connection": func(w *rig, _ *fake.Server) error { return w.host.Reload(context.Background(), "s") },
		"a lost session":   func(_ *rig, fk *fake.Server) error { fk.LoseSessions(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			srv, fk := serve(t, "s", fake.Options{Versions: legacyOnly})
			w := start(t, []config.Server{srv}, options{}, nil)
			v := single1(t, w, "s")
			do(t, v, legacyAgent, mcp.MethodSetLevel, `{"level":"debug"}`)
			do(t, v, legacyAgent, mcp.MethodSubscribe, `{"uri":"fake://readme"}`)
			do(t, v, legacyAgent, mcp.MethodSubscribe, `{"uri":"fake://other"}`)
			do(t, v, legacyAgent, mcp.MethodUnsubscribe, `{"uri":"fake://other"}`)
			if err := lose(w, fk); err != nil {
				t.Fatal(err)
			}
			do(t, v, legacyAgent, mcp.MethodToolsCall, `{"name":"echo"}`)
			for method, want := range map[string]int{mcp.MethodSetLevel: 2, mcp.MethodSubscribe: 3} {
				if n := fk.Ledger().Count(method); n != want {
					t.Errorf("%s arrived %d times, want %d", method, n, want)
				}
			}
		})
	}
}
