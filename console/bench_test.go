package console

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// BenchmarkScreen is what a look at the first page costs with many servers, for each
// browser and second.
func BenchmarkScreen(b *testing.B) {
	s := &scene{}
	for i := range 100 {
		s.servers = append(s.servers, Server{
			Account: fmt.Sprintf("server-%d", i), Name: "x", State: StateConnected, Transport: "http", LastCall: time.Now(), Latency: make([]Second, 60),
		})
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
