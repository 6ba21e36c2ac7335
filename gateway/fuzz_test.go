package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// Whatever is posted, the answer is a status that makes sense and, where it is
// JSON, a message; and what reaches a view agrees with the headers.
func FuzzPost(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",`+goodMeta+`}}`, "2026-07-28", "tools/call", "a", "")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "2025-11-25", "", "", "SESSION")
	f.Add(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "", "", "", "SESSION")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\u0061","requestState":"usher1.x.y",`+askMeta+`}}`, "2026-07-28", "tools/call", "=?base64?YQ==?=", "")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a"]},`+goodMeta+`}}`, "2026-07-28", "subscriptions/listen", "", "")
	f.Add(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}`, "", "", "", "SESSION")
	f.Add(`{"jsonrpc":"2.0","id":1,"result":{}}`, "", "", "", "SESSION")
	f.Add("\xff{}", "v", "m", "n", "s")
	var method, name string
	view := &script{do: func(_ context.Context, a surface.Agent, r mcp.Request) ([]byte, error) {
		p, _ := mcp.ReadParams(r.Params)
		if n, named := p.NameFor(r.Method); mcp.Stateless(a.Version) && (r.Method != method || named && n != name && n != "") {
			f.Errorf("a view was asked %s %q under the headers %q and %q", r.Method, n, method, name)
		}
		return []byte(`{}`), nil
	}}
	g := New(view, nil)
	f.Cleanup(g.Close)
	h := g.Handler()
	f.Fuzz(func(t *testing.T, body, v, m, n, s string) {
		method, name = m, n
		if text, err := wire.DecodeHeader(n); err == nil {
			name = text
		}
		if s == "SESSION" {
			s = hello(t, h)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "POST", "/mcp", strings.NewReader(body))
		r.Host = "localhost"
		r.Header = http.Header{"Content-Type": {"application/json"}, wire.HeaderVersion: {v}, wire.HeaderMethod: {m}, wire.HeaderName: {n}, wire.HeaderSession: {s}}
		w := httptest.NewRecorder()
		if strings.Contains(body, "listen") {
			cancel() // it would stay open
		}
		h.ServeHTTP(w, r)
		cancel()
		switch w.Code {
		case 200, 202, 400, 404, 429:
		default:
			t.Errorf("status %d for %q", w.Code, body)
		}
		if w.Header().Get("Content-Type") == "application/json" && jsonx.Valid(w.Body.Bytes()) != nil {
			t.Errorf("%q for %q", w.Body, body)
		}
		if s != "" {
			send(t, h, "DELETE", "/mcp", "", wire.HeaderSession, s)
		}
	})
}
