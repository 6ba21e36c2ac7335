package console

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/usher-mcp/usher/host"
)

// BenchmarkScreen is what a look at the first page costs with many servers, for each
// browser and second.
func BenchmarkScreen(b *testing.B) {
	s := &scene{}
	for i := range 100 {
		one := row(fmt.Sprintf("server-%d", i), host.Connected)
		one.Transport, one.LastCall, one.Latency = "http", time.Now(), make([]Second, 60)
		s.servers = append(s.servers, one)
		s.servers[i].Latency[i%60] = Second{Calls: 1, Worst: time.Second}
	}
	c := New(s, nil)
	defer c.Close()
	r := httptest.NewRequest("GET", "http://127.0.0.1/", nil)
	for b.Loop() {
		if n := len(c.screen(b.Context(), r, &session{}, &url.URL{Path: "/"}, nil).regions()); n != 3 {
			b.Fatal(n)
		}
	}
}
