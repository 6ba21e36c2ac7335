package host

import (
	"testing"
)

// BenchmarkDo is what supervision costs on top of a connection that answers at
// once.
func BenchmarkDo(b *testing.B) {
	s := &stage{}
	h := newHost(nil, s.dial)
	defer h.Close()
	mustSpawn(b, h, lazyServer("a"))
	req := callTool("echo", nonce(1))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Do(b.Context(), keyA, req); err != nil {
			b.Fatal(err)
		}
	}
}
