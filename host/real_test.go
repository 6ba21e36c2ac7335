package host

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// What may run twice is tried again on a fresh child.
func TestRestartChild(t *testing.T) {
	h := realHost(t, Options{})
	mustSpawn(t, h, childServer(t, "a"))
	req := callTool("crash", nonce(1))
	req.Repeatable = true
	_, err := h.Do(t.Context(), keyA, req) // the second child dies as well
	wantErr(t, err, upstream.ErrTransport)
	if errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("harmless, but: %v", err)
	}
	if st := stateOf(t, h, "a"); st.RestartCount != 2 || st.ConsecutiveFailures != 1 || h.Stats().Dials != 2 {
		t.Errorf("%+v, %d dials", st, h.Stats().Dials)
	}
}

// A URL whose server drops one answer: the harmless tool is asked again.
func TestRetryOverHTTP(t *testing.T) {
	s, url := fakeURL(t, &fake.Options{Switches: []string{"halfclose;on=tools/call;times=1"}})
	h := realHost(t, Options{})
	srv := urlServer("a", url)
	srv.Trust = true
	mustSpawn(t, h, srv)
	if _, err := h.Tools(t.Context(), keyA); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Do(t.Context(), keyA, callTool("echo", nonce(1))); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Ledger().Calls("echo")); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// The tool list known from an earlier process is enough for header mirroring.
func TestHeadersFromCatalog(t *testing.T) {
	s, url := fakeURL(t, nil)
	memory := newMemory()
	for range 2 {
		h := realHost(t, Options{Memory: memory})
		mustSpawn(t, h, urlServer("a", url))
		_, err := h.Do(t.Context(), keyA, callTool("region", map[string]string{"region": "eu"}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Tools(t.Context(), keyA); err != nil {
			t.Fatal(err)
		}
		h.Close()
	}
	// First: refused, listed, repeated. Then: right at once.
	if n := len(s.Ledger().Calls("region")); n != 3 {
		t.Errorf("%d calls, want 3", n)
	}
}

func TestListChangedIsHeard(t *testing.T) {
	for _, version := range []string{mcp.Latest, mcp.LatestLegacy} {
		t.Run(version, func(t *testing.T) {
			heard := make(chan struct{}, 1)
			s, url := fakeURL(t, &fake.Options{Versions: []string{version}})
			h := realHost(t, Options{OnNotification: func(_ Key, m mcp.Message) {
				if m.Method == mcp.MethodNotifyTools {
					select {
					case heard <- struct{}{}:
					default: // told already
					}
				}
			}})
			mustSpawn(t, h, urlServer("a", url))
			before, err := h.Tools(t.Context(), keyA)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			stream := func(e fake.Entry) bool {
				return e.Method == mcp.MethodListen || e.Event == fake.EventGet
			}
			if _, err := s.Ledger().WaitFor(ctx, stream); err != nil {
				t.Fatal(err)
			}
			for done := false; !done; { // the stream may be open a moment after it was asked for
				s.SetTools(fake.DefaultTools()[:1])
				select {
				case <-heard:
					done = true
				case <-time.After(50 * time.Millisecond):
				case <-ctx.Done():
					t.Fatal("never heard of the change")
				}
			}
			if c, _ := h.Cached(keyA); !c.Stale || len(c.Tools) != len(before.Tools) {
				t.Errorf("stale %v, %d tools", c.Stale, len(c.Tools))
			}
			if after, err := h.Tools(t.Context(), keyA); err != nil || len(after.Tools) != 1 {
				t.Errorf("%d tools, %v", len(after.Tools), err)
			}
		})
	}
}

func TestAllPages(t *testing.T) {
	_, url := fakeURL(t, &fake.Options{PageSize: 3})
	h := realHost(t, Options{})
	mustSpawn(t, h, urlServer("a", url))
	c, err := h.Tools(t.Context(), keyA)
	if err != nil || len(c.Tools) != len(fake.DefaultTools()) {
		t.Errorf("%d tools, %v", len(c.Tools), err)
	}
	_, url = fakeURL(t, &fake.Options{Switches: []string{"loop"}})
	mustSpawn(t, h, urlServer("loop", url))
	if _, err := h.Tools(t.Context(), Key{Server: "loop"}); !errors.Is(err, upstream.ErrProtocol) {
		t.Errorf("endless pages: %v", err)
	}
}

func TestLogs(t *testing.T) {
	h := realHost(t, Options{})
	mustSpawn(t, h, childServer(t, "a", "--switch", "exit-on-start"))
	for range 2 {
		_, err := h.Do(t.Context(), keyA, callTool("echo", nil))
		wantErr(t, err, upstream.ErrTransport)
	}
	lines, err := h.Logs(t.Context(), keyA, false)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for l := range lines {
		if strings.Contains(l.Text, "cannot start") {
			n++
		}
	}
	if n < 2 {
		t.Errorf("%d lines; those of both starts should be there", n)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	follow, err := h.Logs(ctx, keyA, true)
	if err != nil {
		t.Fatal(err)
	}
	for range follow {
		stop()
	}
}

// Reload under load with a real child and a real URL: no call is lost.
func TestReloadReal(t *testing.T) {
	_, url := fakeURL(t, &fake.Options{Ledger: fake.DiscardLedger()})
	h := realHost(t, Options{MaxConnected: 5})
	mustSpawn(t, h, urlServer("web", url))
	mustSpawn(t, h, childServer(t, "child"))
	for name, times := range map[string]int{"web": 100, "child": 8} {
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		called := make(chan struct{}, 8)
		for range 8 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if _, err := h.Do(t.Context(), Key{Server: name}, callTool("pay", map[string]any{"id": "x", "ms": 2})); err != nil {
						t.Errorf("%s: lost: %v", name, err)
						return
					}
					select {
					case called <- struct{}{}:
					default:
					}
				}
			})
		}
		for range times {
			<-called
			if err := h.Reload(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
		stop()
		wg.Wait()
	}
}

// No file descriptor stays behind.
func TestNoDescriptorsLeft(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0 // only Linux counts
		}
		return len(entries)
	}
	h := realHost(t, Options{})
	mustSpawn(t, h, childServer(t, "a"))
	var before int
	for i := range 7 {
		if _, err := h.Do(t.Context(), keyA, callTool("echo", nonce(i))); err != nil {
			t.Fatal(err)
		}
		if err := h.Stop("a"); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			before = count()
		}
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors after five restarts more, %d before", after, before)
	}
}

// A subscription hears of its resource in both eras, and ends with its context.
func TestListenToResource(t *testing.T) {
	for _, version := range []string{mcp.Latest, mcp.LatestLegacy} {
		t.Run(version, func(t *testing.T) {
			heard := make(chan string, 1)
			hear := func(m mcp.Message) {
				if m.Method == mcp.MethodNotifyUpdated {
					select {
					case heard <- string(m.Params):
					default: // told already
					}
				}
			}
			s, url := fakeURL(t, &fake.Options{Versions: []string{version}})
			h := realHost(t, Options{OnNotification: func(_ Key, m mcp.Message) { hear(m) }})
			mustSpawn(t, h, urlServer("a", url))
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			ended := make(chan error, 1)
			go func() {
				ended <- h.Listen(ctx, keyA, upstream.Subscription{URIs: []string{"fake://readme"}}, hear)
			}()
			for got := ""; got == ""; {
				s.Touch("fake://readme")
				select {
				case got = <-heard:
					if !strings.Contains(got, "fake://readme") {
						t.Errorf("heard %s", got)
					}
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
					t.Fatal("heard nothing")
				}
			}
			if st := stateOf(t, h, "a"); st.RefCount != 1 {
				t.Errorf("held by %d", st.RefCount)
			}
			stop()
			if err := <-ended; err == nil {
				t.Error("it ended without saying why")
			}
		})
	}
}
