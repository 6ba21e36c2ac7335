package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// sink is a response that nobody keeps.
type sink struct{ h http.Header }

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

// What the gateway itself adds to a call, without the network.
func BenchmarkCall(b *testing.B) {
	answer := []byte(`{"content":[{"type":"text","text":"` + string(bytes.Repeat([]byte("x"), 256)) + `"}],"resultType":"complete"}`)
	view := &script{do: func(context.Context, surface.Agent, mcp.Request) ([]byte, error) { return answer, nil }}
	for _, bm := range []struct{ name, meta, session string }{
		{"modern", "," + goodMeta, ""}, {"modern that can be asked", "," + askMeta, ""}, {"older", "", "s"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			g := New(view, nil)
			defer g.Close()
			h := g.Handler()
			headers := http.Header{
				"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
				wire.HeaderVersion: {mcp.Latest}, wire.HeaderMethod: {mcp.MethodToolsCall}, wire.HeaderName: {"x"},
			}
			if bm.session != "" {
				r := httptest.NewRequest("POST", "/mcp", bytes.NewReader([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)))
				r.Host, r.Header = "localhost", headers.Clone()
				r.Header.Set(wire.HeaderVersion, mcp.LatestLegacy)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				headers.Set(wire.HeaderSession, w.Header().Get(wire.HeaderSession))
				headers.Set(wire.HeaderVersion, mcp.LatestLegacy)
			}
			body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1,"b":"two"}` + bm.meta + `}}`)
			r := httptest.NewRequest("POST", "/mcp", nil)
			r.Host, r.Header, r.ContentLength = "localhost", headers, int64(len(body))
			reader := bytes.NewReader(body)
			b.ReportAllocs()
			for b.Loop() {
				reader.Reset(body)
				r.Body = io.NopCloser(reader)
				h.ServeHTTP(&sink{http.Header{}}, r)
			}
		})
	}
}
