package upstream

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// A server of a project file that nobody approved does not make usher connect to this
// machine, whichever way the address is spelled; not even a connection is opened.
func TestPublicTransportRefusesLocalAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepted atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			_ = c.Close()
		}
	}()
	rt := NewPublicTransport()
	defer rt.CloseIdleConnections()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, scheme := range []string{"http", "https"} {
		for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, scheme+"://"+net.JoinHostPort(strings.Trim(host, "[]"), port)+"/mcp", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := rt.RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			if !errors.Is(err, ErrNotPublic) {
				t.Errorf("%s://%s: %v, want %v", scheme, host, err, ErrNotPublic)
			}
		}
	}
	_ = l.Close()
	<-done
	if n := accepted.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}
