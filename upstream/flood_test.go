package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// peak counts what happens at once.
type peak struct {
	mu        sync.Mutex // guards now, most
	now, most int
}

func (p *peak) enter() (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now++
	p.most = max(p.most, p.now)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.now--
	}
}

func (p *peak) max() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

// hostile starts a legacy fake with switches, and counts its open HTTP requests.
func hostile(t *testing.T, transport string, switches ...string) (config.Server, *peak) {
	var p peak
	srv := config.Server{Name: "hostile", MaxMessageBytes: 1 << 20}
	if transport == "stdio" {
		srv.Transport, srv.Command = config.TransportStdio, testSelf(t)
		srv.Args = []string{"child-fake", "--versions", mcp.LatestLegacy}
		for _, sw := range switches {
			srv.Args = append(srv.Args, "--switch", sw)
		}
		return srv, &p
	}
	s := fake.New(&fake.Options{Versions: []string{mcp.LatestLegacy}, Switches: switches, Ledger: fake.DiscardLedger()})
	h := s.Handler()
	srv.Transport = config.TransportHTTP
	if transport == "sse" {
		h, srv.Transport = s.SSEHandler(), config.TransportSSE
	}
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer p.enter()()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(hs.Close)
	t.Cleanup(s.Close)
	srv.URL = hs.URL
	return srv, &p
}

// TestAnswersAreBounded sends thousands of pings from servers that accept no answer.
// Each of them once cost a goroutine, and over HTTP a socket. They must cost a fixed
// number, and the connection must be closed as the server's failure.
func TestAnswersAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name, transport string
		switches        []string
	}{
		{"http call", "http", []string{"ping-flood=2000", "hold-answers"}},
		{"http session", "http", []string{"ping-flood=2000;on=GET", "hold-answers"}},
		{"sse", "sse", []string{"ping-flood=2000", "hold-answers"}},
		{"stdio", "stdio", []string{"ping-flood=20000", "deaf"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv, open := hostile(t, tt.transport, tt.switches...)
			before := runtime.NumGoroutine()
			c := dial(t, srv, &upstream.Options{
				Executable: testSelf(t), OnNotification: func(mcp.Message) {}, AnswerTimeout: time.Second,
				Grace: 100 * time.Millisecond, Kill: 100 * time.Millisecond,
			})
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			_, err := c.Do(ctx, callTool("echo", `{}`))
			if tt.name != "http session" && !(errors.Is(err, upstream.ErrProtocol) && errors.Is(err, upstream.ErrLimit) && upstream.MaybeSent(err)) {
				t.Errorf("the call during the flood: %v", err)
			}
			// A connection over HTTP has about six goroutines at both of its ends.
			if n := runtime.NumGoroutine() - before; n > 100 {
				t.Errorf("%d goroutines more", n)
			}
			select {
			case <-c.Gone().Done():
			case <-ctx.Done():
				t.Fatal("the connection is still there")
			}
			if n := open.max(); n > limit.ServerAnswerWriters+3 { // the stream, the call, the end of the session
				t.Errorf("%d requests were open at once", n)
			}
			_, err = c.Do(ctx, callTool("echo", `{}`))
			if !errors.Is(err, upstream.ErrLimit) || upstream.MaybeSent(err) {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// TestServerRequestsAreBounded asks for 300 inputs at once. So many as the limit says
// reach the client, the rest is refused, and the server can ask again afterwards.
func TestServerRequestsAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name, transport string
		perCall         bool
		want            int
	}{
		{"http call", "http", true, limit.ServerRequestsPerCall},
		{"stdio call", "stdio", true, limit.ServerRequestsPerCall},
		{"http connection", "http", false, limit.ServerRequests},
		{"stdio connection", "stdio", false, limit.ServerRequests},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv, _ := hostile(t, tt.transport, "ask-flood=300;times=1")
			var asked peak
			finish := make(chan struct{})
			answer := func(ctx context.Context, _ string, _ []byte) ([]byte, *mcp.Error) {
				defer asked.enter()()
				select {
				case <-finish:
				case <-ctx.Done():
				}
				return upstream.DeclineForm(), nil
			}
			opt := &upstream.Options{Executable: testSelf(t)}
			req := callTool("echo", `{"k":"v"}`)
			if tt.perCall {
				req.OnRequest = answer
			} else {
				opt.OnRequest = answer
			}
			c := dial(t, srv, opt)
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			if result, err := c.Do(ctx, req); err != nil || !strings.Contains(string(result), `"k":"v"`) {
				t.Errorf("the call: %.100s, %v", result, err)
			}
			if n := asked.max(); n > tt.want || n == 0 {
				t.Errorf("%d requests at once, want %d", n, tt.want)
			}
			close(finish)
			if _, err := c.Do(ctx, req); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// TestUnknownAnswers wants a connection closed on which the server answers requests
// that were never made.
func TestUnknownAnswers(t *testing.T) {
	srv, _ := hostile(t, "stdio", "unsolicited=2000")
	c := dial(t, srv, &upstream.Options{Executable: testSelf(t)})
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if _, err := c.Do(ctx, callTool("echo", `{}`)); !errors.Is(err, upstream.ErrLimit) {
		t.Errorf("the call: %v", err)
	}
	select {
	case <-c.Gone().Done():
	case <-ctx.Done():
		t.Error("the connection is still there")
	}
}

// TestListBytes wants a list given up that is small in every page and endless as a
// whole.
func TestListBytes(t *testing.T) {
	for _, kind := range []string{"http/modern", "stdio/legacy"} {
		srv, ledger := fakeTarget(t, kind, "list-bomb=512")
		c := dial(t, srv, &upstream.Options{Executable: testSelf(t)})
		_, err := c.List(t.Context(), mcp.MethodToolsList)
		if !errors.Is(err, upstream.ErrLimit) || !errors.Is(err, upstream.ErrProtocol) {
			t.Errorf("%s: %v", kind, err)
		}
		if ledger == nil {
			continue
		}
		n := 0
		for _, e := range ledger.Entries() {
			if e.Event == fake.EventRequest && e.Method == mcp.MethodToolsList {
				n++
			}
		}
		if want := limit.ServerListBytes / (512 << 10); n > want+1 {
			t.Errorf("%s: %d pages were read, want %d", kind, n, want)
		}
	}
}

// TestServerInfoBytes wants a server refused whose instructions are a book.
func TestServerInfoBytes(t *testing.T) {
	for _, version := range []string{mcp.Latest, mcp.LatestLegacy} {
		for size, want := range map[int]string{limit.ServerInfoBytes / 2: "ok", limit.ServerInfoBytes: "protocol"} {
			s := fake.New(&fake.Options{Versions: []string{version}, Instructions: strings.Repeat("x", size)})
			hs := httptest.NewServer(s.Handler())
			c, err := upstream.Dial(t.Context(), &config.Server{Name: "book", Transport: config.TransportHTTP, URL: hs.URL}, nil)
			if outcome(err) != want || want != "ok" && !errors.Is(err, upstream.ErrLimit) {
				t.Errorf("%s, %d bytes: %v", version, size, err)
			}
			if c != nil {
				_ = c.Close()
			}
			s.Close()
			hs.Close()
		}
	}
}
