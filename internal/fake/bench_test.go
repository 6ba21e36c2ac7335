package fake

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// BenchmarkCall is the floor that measurements through a host stand on: one
// modern tools/call over loopback HTTP.
func BenchmarkCall(b *testing.B) {
	s := New(&Options{Ledger: DiscardLedger()})
	url, stop, err := s.Listen()
	if err != nil {
		b.Fatal(err)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	defer stop()
	b.ReportAllocs()
	for b.Loop() {
		req, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, url+"/mcp", strings.NewReader(echoCall))
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, wire.HeaderVersion: {mcp.V20260728}, wire.HeaderMethod: {"tools/call"}, wire.HeaderName: {"echo"}}
		res, err := tr.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}
