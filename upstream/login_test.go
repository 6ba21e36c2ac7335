package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// doorman stands in front of a server and answers in its place where it likes to.
type doorman func(r *http.Request, body []byte) (status int)

func guarded(t *testing.T, behind http.Handler, d doorman) *config.Server {
	t.Helper()
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if status := d(r, body); status != 0 {
			w.WriteHeader(status)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(hs.Close)
	return &config.Server{Name: "s", Transport: config.TransportHTTP, URL: hs.URL}
}

func legacyServer(t *testing.T, switches ...string) *fake.Server {
	s := fake.New(&fake.Options{Versions: []string{mcp.LatestLegacy}, Switches: switches})
	t.Cleanup(s.Close)
	return s
}

func dialled(t *testing.T, srv *config.Server, opt *upstream.Options) *upstream.Conn {
	t.Helper()
	c, err := upstream.Dial(t.Context(), srv, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

var echo = mcp.Request{Method: mcp.MethodToolsCall, Params: []byte(`{"name":"echo","arguments":{"text":"x"}}`)}

// A session that is lost and cannot be started again at once is started again by the next
// request.
func TestSessionLostAndRefused(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError} {
		s := legacyServer(t)
		var refuse atomic.Bool
		c := dialled(t, guarded(t, s.Handler(), func(_ *http.Request, body []byte) int {
			if refuse.Load() && bytes.Contains(body, []byte(`"initialize"`)) {
				return status
			}
			return 0
		}), nil)
		s.LoseSessions()
		refuse.Store(true)
		if _, err := c.Do(t.Context(), echo); err == nil {
			t.Fatalf("HTTP %d: the call worked", status)
		}
		refuse.Store(false)
		if _, err := c.Do(t.Context(), echo); err != nil {
			t.Errorf("HTTP %d: %v", status, err)
		}
	}
}

// A server that wants a login on the transport it speaks, and knows nothing of the one
// that was tried first, wants a login.
func TestLoginAtTheOtherTransport(t *testing.T) {
	for name, tt := range map[string]struct {
		transport config.Transport
		post, get int
	}{
		"an old server taken for a newer one":     {config.TransportHTTP, http.StatusNotFound, http.StatusUnauthorized},
		"a server that was upgraded, and refuses": {config.TransportSSE, http.StatusUnauthorized, http.StatusMethodNotAllowed},
	} {
		srv := guarded(t, http.NotFoundHandler(), func(r *http.Request, _ []byte) int {
			if r.Method == http.MethodGet {
				return tt.get
			}
			return tt.post
		})
		srv.Transport = tt.transport
		if _, err := upstream.Dial(t.Context(), srv, nil); !errors.Is(err, upstream.ErrUnauthorized) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An answer that cannot be picked up later, with a token that has ended meanwhile, is
// that of a call that was made: whoever takes it for a refusal would make it twice.
func TestResumeRefused(t *testing.T) {
	for _, tt := range []struct {
		status  int
		renewed bool
	}{{http.StatusUnauthorized, true}, {http.StatusUnauthorized, false}, {http.StatusTooManyRequests, false}, {http.StatusNotFound, false}} {
		s := legacyServer(t, "sse-drop=ids")
		var fetched atomic.Int32
		c := dialled(t, guarded(t, s.Handler(), func(r *http.Request, _ []byte) int {
			if r.Header.Get(wire.HeaderLastEvent) != "" && (fetched.Add(1) == 1 || !tt.renewed) {
				return tt.status
			}
			return 0
		}), &upstream.Options{Refused: func(context.Context, *upstream.UnauthorizedError) error {
			if !tt.renewed {
				return errors.New("nothing to be done")
			}
			return nil
		}})
		_, err := c.Do(t.Context(), echo)
		if n := s.Ledger().Count(mcp.MethodToolsCall); (err == nil) != tt.renewed || n != 1 {
			t.Errorf("HTTP %d, renewed %v: %v, %d calls", tt.status, tt.renewed, err, n)
		}
		if got := outcome(err); !tt.renewed && got != "transport" {
			t.Errorf("HTTP %d: %s (%v); it was carried out", tt.status, got, err)
		}
	}
}

// Streams that have worked and are refused when they are opened again are opened with
// the next token. One that never worked is not for us.
func TestStreamRefused(t *testing.T) {
	for version, drop := range map[string]string{mcp.LatestLegacy: "push-drop;times=1", mcp.Latest: "listen-drop;times=1"} {
		for _, at := range []int32{1, 2} { // which try is refused
			t.Run(version, func(t *testing.T) {
				t.Parallel()
				s := fake.New(&fake.Options{Versions: []string{version}, Switches: []string{drop}})
				t.Cleanup(s.Close)
				var tries, asked atomic.Int32
				refused := make(chan struct{})
				c := dialled(t, guarded(t, s.Handler(), func(r *http.Request, body []byte) int {
					stream := r.Method == http.MethodGet || bytes.Contains(body, []byte(mcp.MethodListen))
					if stream && tries.Add(1) == at {
						close(refused)
						return http.StatusUnauthorized
					}
					return 0
				}), &upstream.Options{
					Refused:        func(context.Context, *upstream.UnauthorizedError) error { asked.Add(1); return nil },
					OnNotification: func(mcp.Message) {},
				})
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				var listening sync.WaitGroup
				if mcp.Stateless(version) {
					listening.Go(func() { _ = c.Listen(ctx, upstream.Subscription{Tools: true}, func(mcp.Message) {}) })
				}
				<-refused
				opened, want := 0, int(at)-1 // asked about, where it had worked
				if want > 0 {
					_, err := s.Ledger().WaitFor(ctx, func(e fake.Entry) bool {
						if e.Event == fake.EventListening {
							opened++
						}
						return opened == 2
					})
					if err != nil {
						t.Errorf("%v, %d tries", err, tries.Load())
					}
				} else {
					listening.Wait()
				}
				if int(asked.Load()) != want {
					t.Errorf("asked %d times what to do, want %d", asked.Load(), want)
				}
				stop()
				listening.Wait()
			})
		}
	}
}

// A subscription whose stream ends is reported as lost before it is confirmed again.
func TestStreamLost(t *testing.T) {
	s := fake.New(&fake.Options{Versions: []string{mcp.Latest}, Switches: []string{"listen-drop;times=1"}})
	t.Cleanup(s.Close)
	c := dialled(t, guarded(t, s.Handler(), func(*http.Request, []byte) int { return 0 }), &upstream.Options{})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	heard := make(chan string, 8)
	want := upstream.Subscription{Tools: true, Ready: func() { heard <- "ready" }, Lost: func() { heard <- "lost" }}
	var listening sync.WaitGroup
	listening.Go(func() { _ = c.Listen(ctx, want, func(mcp.Message) {}) })
	for i, want := range []string{"ready", "lost", "ready"} {
		select {
		case got := <-heard:
			if got != want {
				t.Errorf("event %d is %q, want %q", i+1, got, want)
			}
		case <-ctx.Done():
			t.Fatalf("no event %d", i+1)
		}
	}
	stop()
	listening.Wait()
}

// A request that gets no credential is not sent.
func TestNotAuthorized(t *testing.T) {
	s := legacyServer(t)
	broken := errors.New("the store is locked")
	var fails atomic.Bool
	c := dialled(t, guarded(t, s.Handler(), func(*http.Request, []byte) int { return 0 }), &upstream.Options{Authorize: func(*http.Request) error {
		if fails.Load() {
			return broken
		}
		return nil
	}})
	fails.Store(true)
	if _, err := c.Do(t.Context(), echo); !errors.Is(err, broken) || upstream.MaybeSent(err) {
		t.Errorf("%v, perhaps sent %v", err, upstream.MaybeSent(err))
	}
}

// Some servers say with another status than 401 that a token is no good.
func TestInvalidToken(t *testing.T) {
	for _, status := range []string{"400", "403"} {
		s := legacyServer(t, "http-status="+status, `challenge=Bearer error="invalid_token"`)
		hs := httptest.NewServer(s.Handler())
		t.Cleanup(hs.Close)
		_, err := upstream.Dial(t.Context(), &config.Server{Name: "s", Transport: config.TransportHTTP, URL: hs.URL}, nil)
		if !errors.Is(err, upstream.ErrUnauthorized) {
			t.Errorf("HTTP %s: %v", status, err)
		}
	}
}
