package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/internal/limit"
)

// pipes is a listener whose connections come from dial.
type pipes struct {
	next chan net.Conn
	once sync.Once
	done chan struct{}
}

func newPipes() *pipes { return &pipes{next: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.next:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// from is a connection that comes from an address.
type from struct {
	net.Conn
	ip string
}

func (f from) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.ip), Port: 2} }

// dial connects from an address.
func (p *pipes) dial(t *testing.T, ip string) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close() })
	select {
	case p.next <- from{theirs, ip}:
	case <-time.After(time.Minute):
		t.Fatalf("a connection from %s is not accepted", ip)
	}
	return ours
}

// byName is an authenticator that believes everything.
type byName struct{}

func (byName) Authenticate(_ context.Context, r *http.Request) (authn.Identity, error) {
	if name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return authn.Identity{Principal: name}, nil
	}
	return authn.Identity{}, &authn.RefusedError{Status: http.StatusUnauthorized, Challenge: "Bearer", Reason: "who are you"}
}

// ask sends a request on c as somebody, or as nobody, and returns the status. 0: the
// connection was closed.
func askOn(t *testing.T, c net.Conn, method, name string) int {
	t.Helper()
	authorization := ""
	if name != "" {
		authorization = "Authorization: Bearer " + name + "\r\n"
	}
	go func() { // net.Pipe has no buffer
		_, _ = fmt.Fprintf(c, "%s /mcp HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n", method, authorization)
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// open reports whether nobody closed c.
func open(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	_ = c.SetReadDeadline(time.Time{})
	return err == nil || !errors.Is(err, io.EOF)
}

func count(all []net.Conn) (n int) {
	for _, c := range all {
		if open(c) {
			n++
		}
	}
	return n
}

// servingPipes serves a gateway on pipes until the end of f.
func servingPipes(t *testing.T, opt *Options, f func(t *testing.T, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		g := New(&script{}, opt)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Serve(ctx, p, nil) }()
		f(t, p)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // timers of connections
	})
}

// Idle connections on which nobody authenticated are closed in favour of new ones,
// those of the address that has most first. Neither their requests nor slow ones help.
func TestIdleConnectionsLockNobodyOut(t *testing.T) {
	for name, attack := range map[string]func(t *testing.T, c net.Conn){
		"silent":      func(*testing.T, net.Conn) {},
		"refused":     func(t *testing.T, c net.Conn) { askOn(t, c, "POST", "") },
		"slow header": func(_ *testing.T, c net.Conn) { _, _ = io.WriteString(c, "POST /mcp HTTP/1.1\r\nX: ") },
		"refused GET": func(t *testing.T, c net.Conn) { askOn(t, c, "GET", "") }, // net/http serves it
	} {
		t.Run(name, func(t *testing.T) {
			servingPipes(t, &Options{Auth: byName{}, MaxConns: 40}, func(t *testing.T, p *pipes) {
				neighbour := p.dial(t, "192.0.2.9")
				var hostile []net.Conn
				for range 100 {
					c := p.dial(t, "192.0.2.1")
					attack(t, c)
					hostile = append(hostile, c)
				}
				begun := time.Now()
				if status := askOn(t, p.dial(t, "192.0.2.1"), "POST", "ada"); status != http.StatusUnsupportedMediaType {
					t.Errorf("a client of the same address got %d", status)
				}
				if d := time.Since(begun); d > time.Second {
					t.Errorf("it took %s", d)
				}
				if n := count(hostile); n > 10 || n == 0 {
					t.Errorf("%d idle connections are kept", n)
				}
				if time.Since(begun) < limit.NewConnectionIdle/2 && !open(neighbour) {
					t.Error("an idle connection of another address was closed")
				}
			})
		})
	}
}

// Connections that carried an authenticated request do not count as new ones, wherever
// they come from: behind a proxy all have one address.
func TestAuthenticatedConnectionsAreKept(t *testing.T) {
	servingPipes(t, &Options{Auth: byName{}, MaxConns: 40}, func(t *testing.T, p *pipes) {
		var proxied []net.Conn
		for i := range 30 {
			c := p.dial(t, "192.0.2.1")
			if status := askOn(t, c, []string{"POST", "DELETE"}[i%2], fmt.Sprint("user", i%3)); status == http.StatusUnauthorized || status == 0 {
				t.Fatalf("connection %d got %d", i, status)
			}
			proxied = append(proxied, c)
		}
		for range 50 {
			p.dial(t, "192.0.2.1")
		}
		if n := count(proxied); n != 30 {
			t.Errorf("%d of 30 are left", n)
		}
	})
}

// When all connections are in use, the principal that has most loses idle ones.
func TestIdleConnectionsOfPrincipals(t *testing.T) {
	servingPipes(t, &Options{Auth: byName{}, MaxConns: 20}, func(t *testing.T, p *pipes) {
		var few, many []net.Conn
		for i := range 60 {
			c := p.dial(t, "192.0.2.1")
			name := "greedy"
			if i < 3 {
				name = "modest"
			}
			if askOn(t, c, "POST", name) == 0 {
				t.Fatalf("connection %d of %s is not served", i, name)
			}
			if i < 3 {
				few = append(few, c)
			} else {
				many = append(many, c)
			}
		}
		if n := count(few); n != 3 {
			t.Errorf("%d of 3 are left", n)
		}
		if n := count(many); n > 17 || n < 10 {
			t.Errorf("%d of the greedy are left", n)
		}
	})
}

// An idle connection on which nobody authenticated is closed soon, an authenticated
// one later.
func TestNewConnectionIdle(t *testing.T) {
	servingPipes(t, &Options{Auth: byName{}}, func(t *testing.T, p *pipes) {
		nobody, somebody := p.dial(t, "192.0.2.1"), p.dial(t, "192.0.2.1")
		askOn(t, nobody, "POST", "")
		askOn(t, somebody, "POST", "ada")
		<-time.After(limit.NewConnectionIdle - time.Second)
		if !open(nobody) {
			t.Error("closed too early")
		}
		<-time.After(2 * time.Second)
		if open(nobody) {
			t.Error("an idle connection without authentication is still open")
		}
		if !open(somebody) {
			t.Error("an authenticated connection was closed")
		}
	})
}

// Heads of requests are limited in both HTTP servers.
func TestHeadersAreBounded(t *testing.T) {
	for _, method := range []string{"POST", "GET"} {
		servingPipes(t, &Options{Auth: byName{}}, func(t *testing.T, p *pipes) {
			c := p.dial(t, "192.0.2.1")
			go func() {
				_, _ = fmt.Fprintf(c, "%s /mcp HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", method, strings.Repeat("x", 4*limit.HeaderBytes))
			}()
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%s: %v, %v", method, resp, err)
			}
			if err == nil {
				_ = resp.Body.Close()
			}
		})
	}
}
