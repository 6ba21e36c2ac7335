package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/limit"
)

// scripted is a server that says the same bytes to every request.
type scripted struct {
	url    string
	answer string
	hangUp bool // after each answer
	heard  chan struct{}

	mu       sync.Mutex // guards what follows
	conns    []net.Conn
	requests []*http.Request
}

func newScripted(t *testing.T, answer string, hangUp bool) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{url: "http://" + l.Addr().String() + "/mcp?a=b", answer: answer, hangUp: hangUp, heard: make(chan struct{}, 100)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.closeAll()
		wg.Wait()
	})
	return s
}

func (s *scripted) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		s.mu.Lock()
		s.requests = append(s.requests, req)
		s.mu.Unlock()
		_, _ = io.WriteString(c, s.answer)
		s.heard <- struct{}{}
		if s.hangUp {
			return
		}
	}
}

func (s *scripted) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
}

func (s *scripted) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func newTransport(t *testing.T) *Transport {
	t.Helper()
	tr := NewTransport()
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func postTo(t *testing.T, ctx context.Context, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Mcp-Name", "x y")
	req.Header["Two"] = []string{"1", "2"}
	return req
}

// said is what a caller sees of an answer.
type said struct {
	Failed bool
	Status int
	Header http.Header
	Body   string
	Broken bool
}

func hear(rt http.RoundTripper, req *http.Request) said {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return said{Failed: true}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return said{Status: resp.StatusCode, Header: resp.Header, Body: string(body), Broken: err != nil}
}

// TestDirectIsTheSame: whatever a server says, the direct way and net/http hear the
// same, and the server hears the same from both.
func TestDirectIsTheSame(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for _, tt := range []struct {
		name, answer string
		hangUp       bool
		conns        int // that two requests need
	}{
		{"sized", ok + "Content-Length: 2\r\n\r\n{}", false, 1},
		{"chunked", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", false, 1},
		{"chunked with a trailer", ok + "Trailer: X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n", false, 1},
		{"nothing", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", false, 1},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", false, 1},
		{"closing", ok + "Connection: close\r\nContent-Length: 2\r\n\r\n{}", true, 2},
		{"until the end", ok + "\r\n{}", true, 2},
		{"older", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", true, 2},
		{"interim", "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + ok + "Content-Length: 2\r\n\r\n{}", false, 1},
		{"status", "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx", false, 1},
		{"redirect", "HTTP/1.1 307 Temporary Redirect\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n", false, 1},
		{"hangs up", "", true, 2},
		{"cut in the header", "HTTP/1.1 200 OK\r\nContent-Type: appl", true, 2},
		{"cut in the body", ok + "Content-Length: 20\r\n\r\n{}", true, 2},
		{"cut in a chunk", ok + "Transfer-Encoding: chunked\r\n\r\n20\r\n{}", true, 2},
		{"garbage", "I am no server\r\n\r\n", true, 2},
		{"two lengths", ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", true, 2},
		{"negative length", ok + "Content-Length: -2\r\n\r\n{}", true, 2},
		{"folded header", ok + "X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", false, 1},
		{"long header", ok + "X: " + strings.Repeat("x", limit.ServerHeaderBytes) + "\r\nContent-Length: 2\r\n\r\n{}", true, 2},
		{"another protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", true, 2},
		{"something more", ok + "Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n", false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one, other := newScripted(t, tt.answer, tt.hangUp), newScripted(t, tt.answer, tt.hangUp)
			tr := newTransport(t)
			for range 2 {
				direct := hear(tr, postTo(t, t.Context(), one.url, `{"a":1}`))
				std := hear(tr.base, postTo(t, t.Context(), other.url, `{"a":1}`))
				if tt.name == "another protocol" {
					std = said{Failed: true} // net/http hands such a connection over; nobody here wants it
				}
				if diff := cmp.Diff(std, direct); diff != "" {
					t.Errorf("(-net/http +direct)\n%s", diff)
				}
			}
			if got := one.connections(); got != tt.conns {
				t.Errorf("two requests took %d connections, want %d", got, tt.conns)
			}
			one.mu.Lock()
			defer one.mu.Unlock()
			if diff := cmp.Diff(asSent(other.requests[0]), asSent(one.requests[0])); diff != "" {
				t.Errorf("sent (-net/http +direct)\n%s", diff)
			}
		})
	}
}

func asSent(r *http.Request) any {
	host, _, _ := strings.Cut(r.Host, ":") // the ports differ
	return []any{r.Method, r.RequestURI, host, r.ContentLength, r.Header}
}

// TestDirectOnlyPlain: what needs more than a plain request goes through net/http.
func TestDirectOnlyPlain(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"method":        func(r *http.Request) { r.Method = http.MethodGet },
		"TLS":           func(r *http.Request) { r.URL.Scheme = "https" },
		"no body":       func(r *http.Request) { r.Body, r.ContentLength = nil, 0 },
		"unknown size":  func(r *http.Request) { r.ContentLength = -1 },
		"long":          func(r *http.Request) { r.ContentLength = maxDirectBody + 1 },
		"other host":    func(r *http.Request) { r.Host = "elsewhere" },
		"name":          func(r *http.Request) { r.URL.Host = "müller.example" },
		"zone":          func(r *http.Request) { r.URL.Host = "[fe80::1%25eth0]:80" },
		"upgrade":       func(r *http.Request) { r.Header.Set("Upgrade", "x") },
		"own length":    func(r *http.Request) { r.Header["Content-Length"] = []string{"1"} },
		"upper case":    func(r *http.Request) { r.Header["CONNECTION"] = []string{"close"} },
		"lower case":    func(r *http.Request) { r.Header["connection"] = []string{"close"} },
		"new line":      func(r *http.Request) { r.Header.Set("X", "a\r\nY: b") },
		"new line name": func(r *http.Request) { r.Header["X\r\nY"] = []string{"b"} },
		"not ASCII":     func(r *http.Request) { r.Header.Set("X", "ü") },
		"query":         func(r *http.Request) { r.URL.RawQuery = "a b" },
		"close":         func(r *http.Request) { r.Close = true },
	} {
		req := postTo(t, t.Context(), "http://example.com/mcp", "{}")
		change(req)
		if _, ok := appendHead(nil, req); ok && plain(req) {
			t.Errorf("%s goes the direct way", name)
		}
	}
	if _, ok := appendHead(nil, postTo(t, t.Context(), "http://example.com/mcp", "{}")); !ok {
		t.Error("a plain request does not go the direct way")
	}
}

// TestDirectPeerLeft: a connection that the server closed while it was idle is not
// used, since a request on it would be lost.
func TestDirectPeerLeft(t *testing.T) {
	s := newScripted(t, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", false)
	tr := newTransport(t)
	for range 20 {
		if got := hear(tr, postTo(t, t.Context(), s.url, "{}")); got.Status != http.StatusAccepted {
			t.Fatalf("%+v", got)
		}
		s.closeAll()
		waitGone(t, tr)
	}
}

// waitGone waits until the peer's end of the idle connections has been noticed.
func waitGone(t *testing.T, tr *Transport) {
	t.Helper()
	for _, conns := range tr.idle {
		for _, c := range conns {
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			c.left = 1
			if _, err := c.r.Peek(1); !errors.Is(err, io.EOF) {
				t.Fatalf("the peer has not left: %v", err)
			}
		}
	}
}

// TestDirectCancel: whoever leaves does not wait for the server, before the answer
// or within it, and the connection is not used again.
func TestDirectCancel(t *testing.T) {
	for _, answer := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"} {
		s := newScripted(t, answer, false)
		tr := newTransport(t)
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-s.heard
			cancel(cause)
		}()
		resp, err := tr.RoundTrip(postTo(t, ctx, s.url, "{}"))
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		if !errors.Is(err, cause) {
			t.Errorf("%q: %v", answer, err)
		}
		if len(tr.idle) > 0 {
			t.Errorf("%q: the connection is kept", answer)
		}
	}
}

// TestDirectSweep: idle connections do not stay forever.
func TestDirectSweep(t *testing.T) {
	s := newScripted(t, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", false)
	tr := newTransport(t)
	hear(tr, postTo(t, t.Context(), s.url, "{}"))
	tr.sweepIdle()
	if tr.count != 1 || tr.sweep == nil {
		t.Fatalf("%d connections are left, want the fresh one", tr.count)
	}
	for _, conns := range tr.idle {
		conns[0].since = time.Now().Add(-idleTimeout)
	}
	tr.sweepIdle()
	if tr.count != 0 || len(tr.idle) != 0 || tr.sweep != nil {
		t.Errorf("%d connections are left", tr.count)
	}
}

// FuzzHead: what goes the direct way is read by a server as it was meant.
func FuzzHead(f *testing.F) {
	f.Add("example.com", "/mcp?a=b", "X-Name", "value")
	f.Add("[::1]:80", "/", "Host", "evil")
	f.Add("a", "/%0d%0a", "A", "b\r\nC: d")
	f.Fuzz(func(t *testing.T, host, path, name, value string) {
		u, err := url.Parse("http://" + host + path)
		if err != nil {
			return
		}
		req := &http.Request{Method: http.MethodPost, URL: u, Header: http.Header{name: {value}}, ContentLength: 2}
		head, ok := appendHead(nil, req)
		if !ok {
			return
		}
		got, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(append(head, "{}"...))))
		if err != nil {
			t.Fatalf("%q: %v", head, err)
		}
		want := http.Header{name: {value}, "Content-Length": {"2"}}
		if name != "User-Agent" {
			want.Set("User-Agent", "Go-http-client/1.1")
		}
		if diff := cmp.Diff(want, got.Header); diff != "" || got.Host != u.Host || got.RequestURI != u.RequestURI() {
			t.Fatal(fmt.Sprintf("%q (-want +got)", head), diff)
		}
	})
}
