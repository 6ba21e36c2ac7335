package usher

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
)

// A session of a client has a budget of its own; the next session has another.
func TestSessionBudget(t *testing.T) {
	cfg := &config.Config{Usher: config.DefaultSettings()}
	cfg.Usher.Budgets.Session = 2
	h := opened(t, cfg, "math")
	g := h.Gateway(nil)
	t.Cleanup(g.Close)
	door := httptest.NewServer(g.Handler())
	t.Cleanup(door.Close)
	url := door.URL + "/servers/math/mcp"
	calls := func() (ok int, last string) {
		head := http.Header{}
		head.Set("Mcp-Session-Id", begin(t, url))
		for range 4 {
			_, raw := post(t, url, head, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`)
			if last = string(raw); strings.Contains(last, `"sum":3`) {
				ok++
			}
		}
		return ok, last
	}
	for session := range 2 {
		if n, last := calls(); n != 2 || !strings.Contains(last, "2 calls per session") {
			t.Errorf("session %d: %d calls of 2 were answered, the last with %s", session, n, last)
		}
	}
}
