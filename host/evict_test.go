package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

func TestKeepAlive(t *testing.T) {
	for _, keep := range []time.Duration{0, 500 * time.Millisecond, 5 * time.Minute} {
		t.Run(keep.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stage{}
				h := s.open(t, nil, func(s *config.Server) { s.KeepAlive = keep })
				for range 3 { // use puts the end off
					if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
						t.Fatal(err)
					}
					time.Sleep(keep * 9 / 10)
				}
				synctest.Wait()
				if keep > 0 && (s.count("a") != 1 || !stateOf(t, h, "a").Active) {
					t.Fatalf("%d dials while in use", s.count("a"))
				}
				time.Sleep(keep / 5)
				synctest.Wait()
				if st := stateOf(t, h, "a"); st.Active || st.State != Disconnected || !s.last().closed.Load() {
					t.Errorf("unused for longer than %v: %+v", keep, st)
				}
				if n := h.Stats().Evictions; n == 0 {
					t.Error("not counted")
				}
			})
		})
	}
}

// Every use of many connections puts their end off, and none sets a timer for that.
func TestKeepAliveSetsNoTimerPerCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		h := s.open(t, nil, func(s *config.Server) { s.KeepAlive = time.Minute })
		use := func() time.Time {
			t.Helper()
			if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
				t.Fatal(err)
			}
			u, err := h.unit(keyA)
			if err != nil {
				t.Fatal(err)
			}
			u.mu.Lock()
			defer u.mu.Unlock()
			return u.wakes
		}
		first := use()
		for range 50 {
			time.Sleep(time.Second)
			if at := use(); !at.Equal(first) {
				t.Fatalf("the timer was set anew, from %s to %s", first, at)
			}
		}
		time.Sleep(time.Minute - time.Second)
		if !stateOf(t, h, "a").Active {
			t.Error("it ended within a minute of its last use")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if stateOf(t, h, "a").Active {
			t.Error("it did not end a minute after its last use")
		}
	})
}

// A connection whose callers all left before it was there does not stay.
func TestUnwantedConnectionGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			time.Sleep(10 * time.Second)
			return &double{}, nil
		}}
		h := s.open(t, nil, func(s *config.Server) { s.KeepAlive = 0 })
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, _ = h.Do(ctx, keyA, callTool("x", nil))
		time.Sleep(time.Minute)
		if st := stateOf(t, h, "a"); st.Active || !s.last().closed.Load() {
			t.Errorf("%+v", st)
		}
	})
}

func TestHoldKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		h := s.open(t, nil)
		release, err := h.Hold(t.Context(), keyA)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if st := stateOf(t, h, "a"); !st.Active || st.RefCount != 1 || st.InFlight != 0 {
			t.Errorf("held: %+v", st)
		}
		release()
		release()
		time.Sleep(time.Hour)
		if st := stateOf(t, h, "a"); st.Active || st.RefCount != 0 {
			t.Errorf("released: %+v", st)
		}
	})
}

// A connection that somebody waits for is not idle, although nobody holds it yet.
func TestAwaitedIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		h := s.open(t, nil)
		_, _ = h.Do(t.Context(), keyA, callTool("x", nil))
		u, err := h.unit(keyA)
		if err != nil {
			t.Fatal(err)
		}
		u.waiters++
		if u.evict(0) {
			t.Error("evicted")
		}
		u.waiters--
		if !u.evict(0) {
			t.Error("not evicted")
		}
	})
}

// The least recently used idle child makes room; children of URLs do not count.
func TestMaxConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		h := s.open(t, &Options{MaxConnected: 2})
		mustSpawn(t, h, lazyServer("b"))
		mustSpawn(t, h, lazyServer("c"))
		mustSpawn(t, h, lazyServer("web", func(s *config.Server) {
			s.Transport, s.URL, s.Command = config.TransportHTTP, "http://127.0.0.1:1/", ""
		}))
		for _, name := range []string{"web", "a", "b", "a", "c"} {
			if _, err := h.Do(t.Context(), Key{Server: name}, callTool("x", nil)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		got := ""
		for _, st := range h.Status().Servers {
			got += fmt.Sprintf("%s:%v ", st.Name, st.Active)
		}
		if want := "a:true b:false c:true web:true "; got != want {
			t.Errorf("active %s, want %s", got, want)
		}
	})
}

// A call that finds every place in use waits, in line, and no longer than its
// deadline.
func TestWaitForPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{closing: time.Second, do: func(ctx context.Context, _ mcp.Request) ([]byte, error) {
				return []byte(`{}`), retry.Sleep(ctx, 10*time.Second)
			}}, nil
		}}
		h := s.open(t, &Options{MaxConnected: 1})
		mustSpawn(t, h, lazyServer("b"))
		mustSpawn(t, h, lazyServer("c"))
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		began := time.Now()
		wg.Go(func() {
			if _, err := h.Do(t.Context(), Key{Server: "b"}, callTool("x", nil)); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took != 21*time.Second {
				t.Errorf("b took %v, want 10s for a, 1s for its end, 10s of its own", took)
			}
		})
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		_, err := h.Do(ctx, Key{Server: "c"}, callTool("x", nil))
		wantErr(t, err, ErrBusy)
		wantErr(t, err, context.DeadlineExceeded)
		if s.count("c") != 0 {
			t.Error("c was started although it had left the line")
		}
		wg.Wait()
		if st := stateOf(t, h, "c"); st.State != Disconnected {
			t.Errorf("c is %s", st.State)
		}
	})
}

// Never more children than places, whatever happens.
func TestPlacesUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var alive, most atomic.Int32
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			most.Store(max(most.Load(), alive.Add(1)))
			d := &double{closing: time.Second, gone: func() { alive.Add(-1) }}
			d.do = func(ctx context.Context, _ mcp.Request) ([]byte, error) {
				return []byte(`{}`), retry.Sleep(ctx, time.Second)
			}
			return d, nil
		}}
		h := s.open(t, &Options{MaxConnected: 3})
		var wg sync.WaitGroup
		for i := range 12 {
			name := fmt.Sprint("s", i)
			mustSpawn(t, h, lazyServer(name))
			for range 3 {
				wg.Go(func() {
					for range 3 {
						if _, err := h.Do(t.Context(), Key{Server: name}, callTool("x", nil)); err != nil {
							t.Error(err)
						}
						time.Sleep(time.Second)
					}
				})
			}
		}
		wg.Wait()
		if most.Load() > 3 {
			t.Errorf("%d children at once, want at most 3", most.Load())
		}
		_ = h.Stop("a")
		h.Close()
		if !h.places.Unused() {
			t.Errorf("places after Close: %+v", &h.places)
		}
	})
}

// Requests in flight outlive Reload, but not its grace; Stop ends them at once.
func TestDrainAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		s.next = func(context.Context, config.Server, int) (*double, error) {
			d := &double{}
			d.do = func(ctx context.Context, req mcp.Request) ([]byte, error) {
				select {
				case <-time.After(map[bool]time.Duration{true: 50 * time.Second, false: 10 * time.Second}[string(req.Params) == `{}`]):
					return []byte(`{}`), nil
				case <-d.life.Done():
					return nil, upstream.ErrClosed
				}
			}
			return d, nil
		}
		h := s.open(t, nil)
		short := callTool("x", nil)
		long := Request{Request: mcp.Request{Method: "tools/call", Params: []byte(`{}`)}}
		var wg sync.WaitGroup
		do := func(req Request, want error, after time.Duration) {
			wg.Go(func() {
				began := time.Now()
				if _, err := h.Do(t.Context(), keyA, req); !errors.Is(err, want) || time.Since(began) != after {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(began), want, after)
				}
			})
		}
		do(short, nil, 10*time.Second)
		do(long, ErrOutcomeUnknown, DefaultDrain)
		synctest.Wait()
		if err := h.Reload(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		do(short, nil, 10*time.Second) // on a new connection
		wg.Wait()
		if s.count("a") != 2 {
			t.Errorf("%d dials", s.count("a"))
		}
		do(short, ErrOutcomeUnknown, 3*time.Second)
		time.Sleep(3 * time.Second)
		if err := h.Stop("a"); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if st := stateOf(t, h, "a"); st.State != Disconnected || st.ConsecutiveFailures != 0 || st.RestartCount != 0 {
			t.Errorf("stopped: %+v", st)
		}
		if _, err := h.Do(t.Context(), keyA, short); err != nil {
			t.Errorf("after Stop: %v", err)
		}
	})
}

func TestCloseInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{closing: 5 * time.Second}, nil
		}}
		h := s.open(t, &Options{MaxConnected: 100})
		for i := range 50 {
			mustSpawn(t, h, lazyServer(fmt.Sprint("s", i), func(s *config.Server) { s.Lazy = nil }))
		}
		began := time.Now()
		h.Close()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("closing 50 that take 5s each took %v", took)
		}
		_, err := h.Do(t.Context(), keyA, callTool("x", nil))
		wantErr(t, err, ErrClosed)
		h.Close()
	})
}

// A dial that ends well after Close began is not left open.
func TestCloseWhileDialling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			time.Sleep(10 * time.Second) // deaf to its context
			return &double{}, nil
		}}
		h := s.open(t, nil)
		failed := make(chan error, 1)
		go func() {
			_, err := h.Do(t.Context(), keyA, callTool("x", nil))
			failed <- err
		}()
		synctest.Wait()
		h.Close()
		if !s.last().closed.Load() || s.last().calls.Load() != 0 {
			t.Error("the connection outlived the Host")
		}
		wantErr(t, <-failed, ErrClosed)
	})
}
