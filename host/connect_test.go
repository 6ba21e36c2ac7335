package host

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host/internal/supervise"
	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// Whoever races to connect shares one dial, and the first to lose patience does
// not take it from the others.
func TestSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(ctx context.Context, _ config.Server, _ int) (*double, error) {
			return &double{}, retry.Sleep(ctx, 5*time.Second)
		}}
		h := s.open(t, nil)
		impatient, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := h.Do(impatient, keyA, callTool("x", nil))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the impatient got %v", err)
			}
		})
		synctest.Wait()
		for range 20 {
			wg.Go(func() {
				if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if st := stateOf(t, h, "a"); st.State != Connecting || st.RefCount != 21 {
			t.Errorf("while dialling: %s, %d waiting", st.State, st.RefCount)
		}
		wg.Wait()
		if n := s.count("a"); n != 1 {
			t.Errorf("%d dials, want 1", n)
		}
		if st := stateOf(t, h, "a"); st.State != Connected {
			t.Errorf("state %s", st.State)
		}
	})
}

// A dial that began before Reload fails after a newer one has connected: the state
// stays connected.
func TestLateFailureChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(ctx context.Context, _ config.Server, n int) (*double, error) {
			if n == 1 {
				time.Sleep(20 * time.Second)
				return nil, transportError(false)
			}
			return &double{}, nil
		}}
		h := s.open(t, nil)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
				t.Errorf("the caller of the first dial: %v", err)
			}
		})
		synctest.Wait()
		if err := h.Reload(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		time.Sleep(time.Minute)
		st := stateOf(t, h, "a")
		if st.State != Connected || st.RestartCount != 0 || st.ConsecutiveFailures != 0 || st.LastError != "" {
			t.Errorf("after the late failure: %+v", st)
		}
	})
}

// A dial that began before Reload and succeeds late is not used.
func TestLateSuccessIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &double{}
		s := &stage{next: func(_ context.Context, _ config.Server, n int) (*double, error) {
			if n == 1 {
				time.Sleep(20 * time.Second)
				return first, nil
			}
			return &double{}, nil
		}}
		h := s.open(t, nil)
		go func() { _, _ = h.Do(t.Context(), keyA, callTool("x", nil)) }()
		synctest.Wait()
		_ = h.Reload(t.Context(), "a")
		_, _ = h.Do(t.Context(), keyA, callTool("x", nil))
		time.Sleep(time.Minute)
		if !first.closed.Load() || first.calls.Load() != 0 {
			t.Errorf("the late connection: closed %v, %d calls", first.closed.Load(), first.calls.Load())
		}
	})
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			at = append(at, time.Now())
			return nil, &upstream.TransportError{Op: "connect", Err: errors.New("refused")}
		}}
		h := s.open(t, nil, func(s *config.Server) {
			s.Command, s.URL, s.Transport = "", "http://127.0.0.1:1/mcp", config.TransportHTTP
			s.Supervision.CircuitThreshold = 100
		})
		for range 6 {
			_, err := h.Do(t.Context(), keyA, callTool("x", nil))
			wantErr(t, err, upstream.ErrTransport)
		}
		want := firstBackoff
		for i := 1; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < want/2 || gap > min(want*3/2, maxBackoff)+time.Millisecond {
				t.Errorf("gap %d is %v, want about %v", i, gap, want)
			}
			want = min(want*2, maxBackoff)
		}
		if len(at) != 12 {
			t.Errorf("%d dials for 6 calls, want one more try each", len(at))
		}
		if st := stateOf(t, h, "a"); st.Ejected || st.RestartCount != 0 {
			t.Errorf("a server that cannot be reached was never restarted: %+v", st)
		}
	})
}

// A child that dies in every handshake is probed ever more seldom, however long it is
// called, and works again by itself when it is mended.
func TestCrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return nil, transportError(true)
		}}
		h := s.open(t, nil)
		var err error
		for range 24 * 60 {
			_, err = h.Do(t.Context(), keyA, callTool("x", nil))
			time.Sleep(time.Minute)
		}
		wantErr(t, err, ErrCircuitOpen)
		if actionOf(err) != ActionReload {
			t.Errorf("no way out in %q", err)
		}
		if n := s.count("a"); n > 24*7 {
			t.Errorf("%d starts in a day, want one in ten minutes", n)
		}
		if st := stateOf(t, h, "a"); st.State != Failed || st.Ejected {
			t.Errorf("state %+v", st)
		}
		s.next = nil
		time.Sleep(supervise.MaxPause)
		if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
			t.Errorf("when it is mended: %v", err)
		}
	})
}

// crashing is a server whose connections answer lists and die with every call.
func crashing() *stage {
	return &stage{next: func(context.Context, config.Server, int) (*double, error) {
		return &double{do: func(context.Context, mcp.Request) ([]byte, error) { return nil, transportError(true) }}, nil
	}}
}

// A server that may have no restarts is ejected by its first crash.
func TestNoRestartsEjectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := crashing()
		h := s.open(t, nil, func(s *config.Server) { s.Supervision.MaxRestarts = config.NoRestarts })
		var err error
		for i := 0; i < 20 && !errors.Is(err, ErrEjected); i++ {
			_, err = h.Do(t.Context(), keyA, callTool("x", nil))
			time.Sleep(time.Second)
		}
		wantErr(t, err, ErrEjected)
		if starts := s.count("a"); starts != 1 {
			t.Errorf("%d starts, want 1", starts)
		}
	})
}

// A child that works and crashes, again and again, is ejected, and tried again by one
// request when that has lasted long enough.
func TestEjectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bus event.Bus[event.Event]
		news := bus.Subscribe(0)
		s := crashing()
		h := s.open(t, &Options{Events: &bus})
		var err error
		crashes := 0
		for !errors.Is(err, ErrEjected) && crashes < 20 {
			if _, err = h.Tools(t.Context(), keyA); err == nil {
				_, err = h.Do(t.Context(), keyA, callTool("x", nil))
				crashes++
			}
			time.Sleep(time.Second)
		}
		wantErr(t, err, ErrEjected)
		if starts := s.count("a"); starts != 1+config.DefaultMaxRestarts {
			t.Errorf("ejected after %d starts, want %d", starts, 1+config.DefaultMaxRestarts)
		}
		st := stateOf(t, h, "a")
		if st.State != Ejected || !st.Ejected || !strings.Contains(said(err), "next try in 49m59s") {
			t.Errorf("%+v; %v", st, err)
		}
		news.Close()
		var last event.ServerChanged
		for e := range news.All(t.Context()) {
			if e, ok := e.(event.ServerChanged); ok {
				last = e
			}
		}
		if last.To != string(Ejected) || last.Server != "a" {
			t.Errorf("the last event is %+v", last)
		}
		var ended *Error
		if !errors.As(err, &ended) {
			t.Fatal(err)
		}
		time.Sleep(ended.RetryAfter)
		if st := stateOf(t, h, "a"); st.Ejected || st.State == Ejected {
			t.Errorf("after the announced time: %+v", st)
		}
		_, err = h.Do(t.Context(), keyA, callTool("x", nil)) // the probe
		wantErr(t, err, ErrTransport)
		_, err = h.Do(t.Context(), keyA, callTool("x", nil))
		wantErr(t, err, ErrCircuitOpen)
		s.next = nil
		time.Sleep(supervise.MaxPause)
		if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
			t.Errorf("when it is mended: %v", err)
		}
	})
}

func TestSpawn(t *testing.T) {
	eager := func(s *config.Server) { s.Lazy = nil }
	notFound := &upstream.TransportError{Server: "b", Op: "start", Err: exec.ErrNotFound}
	tests := []struct {
		name string
		srv  config.Server
		dial error
		opt  *Options
		want error
		text string
	}{
		{name: "no name", srv: config.Server{Command: "x"}, want: ErrInvalid, text: "name is empty"},
		{name: "no command", srv: config.Server{Name: "b"}, want: ErrInvalid, text: "spawn b: command is empty"},
		{name: "no url", srv: config.Server{Name: "b", Transport: config.TransportHTTP}, text: "spawn b: url is empty"},
		{name: "twice", srv: lazyServer("a"), want: ErrExists},
		{name: "no such command", srv: lazyServer("b", eager), dial: notFound, want: exec.ErrNotFound},
		{name: "disabled", srv: lazyServer("b", eager, func(s *config.Server) { s.Disabled = true }), want: ErrDisabled},
		{name: "broken", srv: lazyServer("b", eager, func(s *config.Server) { s.Problem = errors.New("line 3") }), want: ErrDisabled, text: "line 3"},
		{name: "placeholder", srv: lazyServer("b", eager, func(s *config.Server) { s.Args = []string{"${MISSING_X}"} }), text: "MISSING_X"},
		{
			name: "held back", srv: lazyServer("b", eager), want: ErrHeldBack, text: "approve the server",
			opt: &Options{Approved: func(context.Context, config.Server) error { return errors.New("new definition") }},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stage{next: func(context.Context, config.Server, int) (*double, error) { return &double{}, tt.dial }}
				h := s.open(t, tt.opt)
				err := h.Spawn(t.Context(), tt.srv, nil)
				if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(said(err), tt.text) {
					t.Errorf("error %v, want %v with %q", err, tt.want, tt.text)
				}
				if names := h.Names(); len(names) != 1 || names[0] != "a" {
					t.Errorf("left behind: %v", names)
				}
				if want := map[bool]int{true: 1}[tt.dial != nil]; s.count("b") != want {
					t.Errorf("%d dials, want %d", s.count("b"), want)
				}
			})
		})
	}
}

// A server whose definition is not lazy stays connected, also when it was only
// registered and the first call connected it: a program that embeds the host says
// nothing about keepAlive, and would connect for every call.
func TestEagerStays(t *testing.T) {
	for _, onlyRegistered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &stage{}
			h := s.open(t, nil)
			srv := config.Server{Name: "b", Command: "server"}
			if err := h.Spawn(t.Context(), srv, &SpawnOptions{Lazy: onlyRegistered}); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if _, err := h.Do(t.Context(), Key{Server: "b"}, callTool("x", nil)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(24 * time.Hour)
			if st := stateOf(t, h, "b"); st.State != Connected || st.Lazy != onlyRegistered || !st.Active {
				t.Errorf("only registered: %v; a day later: %+v", onlyRegistered, st)
			}
			if n := h.Stats().Dials; n != 1 {
				t.Errorf("only registered: %v; connected %d times", onlyRegistered, n)
			}
		})
	}
}

func TestConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(ctx context.Context, _ config.Server, _ int) (*double, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		h := s.open(t, nil)
		began := time.Now()
		_, err := h.Do(t.Context(), keyA, callTool("x", nil))
		wantErr(t, err, context.DeadlineExceeded)
		if errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("nothing was sent, but: %v", err)
		}
		if took := time.Since(began); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("a handshake of 30s took %v", took)
		}
		if st := stateOf(t, h, "a"); st.RestartCount != 1 || st.State != Failed {
			t.Errorf("%+v", st)
		}
	})
}

// Everybody who waited is told of one failed dial, and it counts once.
func TestSharedDialFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			time.Sleep(time.Second)
			return nil, transportError(true)
		}}
		h := s.open(t, nil)
		var wg sync.WaitGroup
		var failed atomic.Int32
		for range 30 {
			wg.Go(func() {
				if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil && !errors.Is(err, ErrOutcomeUnknown) {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		st := stateOf(t, h, "a")
		if failed.Load() != 30 || s.count("a") != 1 || st.ConsecutiveFailures != 1 || st.RestartCount != 1 {
			t.Errorf("%d failed, %d dials, %+v", failed.Load(), s.count("a"), st)
		}
	})
}

func TestLeaseOfSingleton(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held, most atomic.Int32
		turn := make(chan struct{}, 1)
		opt := &Options{Lease: func(ctx context.Context, _ config.Server) (func(), error) {
			select {
			case turn <- struct{}{}:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			most.Store(max(most.Load(), held.Add(1)))
			return func() { held.Add(-1); <-turn }, nil
		}}
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{closing: 3 * time.Second}, nil
		}}
		h := s.open(t, opt, func(s *config.Server) { s.Singleton = true })
		for range 4 {
			if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
				t.Fatal(err)
			}
			_ = h.Reload(t.Context(), "a")
		}
		time.Sleep(time.Minute)
		if most.Load() != 1 || held.Load() != 0 {
			t.Errorf("at most %d at once, %d left", most.Load(), held.Load())
		}
	})
}
