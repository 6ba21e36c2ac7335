package app

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/surface"
)

// A session of a client has a budget of its own; the next session has another.
func TestSessionBudget(t *testing.T) {
	cfg := &config.Config{Usher: config.DefaultSettings()}
	cfg.Usher.Budgets.Session = 2
	h := opened(t, cfg, "math")
	g := h.Frontend().Gateway(nil)
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

// A client over standard input and output has a budget for its connection.
func TestSessionBudgetOverStdio(t *testing.T) {
	cfg := &config.Config{Usher: config.DefaultSettings()}
	cfg.Usher.Budgets.Session = 2
	h := opened(t, cfg, "math")
	g := h.Frontend().Gateway(nil)
	t.Cleanup(g.Close)
	v, err := h.Frontend().Surface().Server(t.Context(), surface.Agent{}, "math")
	if err != nil {
		t.Fatal(err)
	}
	talk := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	for id := 1; id <= 4; id++ {
		talk += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`+"\n", id)
	}
	for connection := range 2 {
		if answered, refused := converse(t, g, v, talk, 5); answered != 2 || refused != 2 {
			t.Errorf("connection %d: %d calls answered, %d refused", connection, answered, refused)
		}
	}
}

// converse sends the lines of a client over a pipe and counts its calls that were
// answered and refused, among as many answers as given.
func converse(t *testing.T, g *gateway.Gateway, v surface.View, talk string, answers int) (answered, refused int) {
	t.Helper()
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- g.ServeStdio(t.Context(), v, toServer, fromServer)
		_ = fromServer.Close()
	}()
	go func() { _, _ = io.WriteString(in, talk) }() // ends when all is read
	lines := bufio.NewScanner(out)
	for range answers {
		if !lines.Scan() {
			t.Fatalf("the connection ended: %v", lines.Err())
		}
		if strings.Contains(lines.Text(), `"sum":3`) {
			answered++
		}
		if strings.Contains(lines.Text(), "2 calls per session") {
			refused++
		}
	}
	_ = in.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return answered, refused
}
