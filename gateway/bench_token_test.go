package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/authn/authntest"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// What the gateway adds to a stateless call of a client with a token, which the call
// ends with.
func BenchmarkCallWithToken(b *testing.B) {
	answer := []byte(`{"content":[{"type":"text","text":"x"}],"resultType":"complete"}`)
	view := &script{do: func(context.Context, surface.Agent, mcp.Request) ([]byte, error) { return answer, nil }}
	for name, ttl := range map[string]time.Duration{"that expires": time.Hour, "that does not expire": 0} {
		b.Run(name, func(b *testing.B) {
			tokens := authn.NewTokens(authntest.NewStore())
			g := New(view, &Options{Auth: tokens})
			defer g.Close()
			text, _, err := tokens.Mint(b.Context(), authn.Mint{TTL: ttl})
			if err != nil {
				b.Fatal(err)
			}
			body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1,"b":"two"},` + goodMeta + `}}`)
			r := httptest.NewRequest("POST", "/mcp", nil)
			r.Host, r.ContentLength = "localhost", int64(len(body))
			r.Header = http.Header{
				"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + text},
				wire.HeaderVersion: {mcp.Latest}, wire.HeaderMethod: {mcp.MethodToolsCall}, wire.HeaderName: {"x"},
			}
			h, reader := g.Handler(), bytes.NewReader(body)
			b.ReportAllocs()
			for b.Loop() {
				reader.Reset(body)
				r.Body = io.NopCloser(reader)
				h.ServeHTTP(&sink{http.Header{}}, r)
			}
		})
	}
}
