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
	"github.com/usher-mcp/usher/host/internal/deadline"
	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// What an outcome does to retry, breaker and restart budget.
func TestOutcomes(t *testing.T) {
	rpc := mcp.Errorf(mcp.CodeInternal, "tool says no")
	tests := []struct {
		name     string
		err      error // of the first request; later ones succeed
		change   func(*config.Server)
		tool     string
		calls    int // requests that reach the server
		failures int // in a row, as the breaker counts, if the call failed
		restarts int
		want     error // nil: the call succeeds
	}{
		{name: "answer", calls: 1},
		{name: "JSON-RPC error", err: rpc, calls: 1, want: rpc},
		{name: "too large", err: &upstream.TooLargeError{Server: "a"}, calls: 1, want: upstream.ErrTooLarge},
		{name: "protocol violation", err: &upstream.ProtocolError{Server: "a"}, calls: 1, failures: 1, want: ErrOutcomeUnknown},
		{name: "protocol violation, read-only", err: &upstream.ProtocolError{Server: "a"}, tool: "look", change: trusted, calls: 1, failures: 1, want: upstream.ErrProtocol},
		{name: "HTTP 500", err: &upstream.StatusError{Status: 500}, calls: 1, failures: 1, want: ErrOutcomeUnknown},
		{name: "HTTP 404", err: &upstream.StatusError{Status: 404}, calls: 1, want: upstream.ErrProtocol},
		{name: "never written", err: transportError(false), calls: 2, restarts: 1},
		{
			name: "never written, retry never", err: transportError(false), calls: 1, failures: 1, restarts: 1, want: upstream.ErrTransport,
			change: func(s *config.Server) { s.Supervision.Retry = config.RetryNever },
		},
		{name: "written", err: transportError(true), calls: 1, failures: 1, restarts: 1, want: ErrOutcomeUnknown},
		{name: "HTTP 503", err: &upstream.StatusError{Status: 503}, calls: 1, failures: 1, restarts: 1, want: ErrOutcomeUnknown},
		{
			name: "written, retry always", err: transportError(true), calls: 2, restarts: 1,
			change: func(s *config.Server) { s.Supervision.Retry = config.RetryAlways },
		},
		{name: "read-only, not trusted", err: transportError(true), tool: "look", calls: 1, failures: 1, restarts: 1, want: ErrOutcomeUnknown},
		{name: "read-only, trusted", err: transportError(true), tool: "look", calls: 2, restarts: 1, change: trusted},
		{name: "idempotent, trusted", err: transportError(true), tool: "put", calls: 2, restarts: 1, change: trusted},
		{name: "neither, trusted", err: transportError(true), tool: "pay", calls: 1, failures: 1, restarts: 1, change: trusted, want: ErrOutcomeUnknown},
		{name: "closed under it", err: upstream.ErrClosed, tool: "pay", calls: 1, want: ErrOutcomeUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
					return &double{
						list: annotatedTools,
						do: func(context.Context, mcp.Request) ([]byte, error) {
							if calls.Add(1) == 1 && tt.err != nil {
								return nil, tt.err
							}
							return []byte(`{}`), nil
						},
					}, nil
				}}
				change := tt.change
				if change == nil {
					change = func(*config.Server) {}
				}
				h := s.open(t, nil, change)
				if _, err := h.Tools(t.Context(), keyA); err != nil {
					t.Fatal(err)
				}
				_, err := h.Do(t.Context(), keyA, callTool(tt.tool, nil))
				if !errors.Is(err, tt.want) || tt.want != ErrOutcomeUnknown && errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				st := stateOf(t, h, "a")
				if int(calls.Load()) != tt.calls || st.RestartCount != tt.restarts || st.ConsecutiveFailures != tt.failures {
					t.Errorf("%d calls, %d restarts, %d failures; want %d, %d, %d", calls.Load(), st.RestartCount, st.ConsecutiveFailures, tt.calls, tt.restarts, tt.failures)
				}
			})
		})
	}
}

func trusted(s *config.Server) { s.Trust = true }

func annotatedTools(context.Context, string) (upstream.List, error) {
	return upstream.List{Received: time.Now(), Items: [][]byte{
		[]byte(`{"name":"look","annotations":{"readOnlyHint":true}}`),
		[]byte(`{"name":"put","annotations":{"idempotentHint":true}}`),
		[]byte(`{"name":"pay","annotations":{"readOnlyHint":false,"idempotentHint":"true"}}`),
	}}, nil
}

func TestMethodsThatOnlyReadAreRepeated(t *testing.T) {
	u := &unit{srv: &config.Server{}}
	for method, want := range map[string]bool{
		mcp.MethodResourcesRead: true, mcp.MethodPromptsGet: true, mcp.MethodToolsList: true,
		mcp.MethodToolsCall: false, mcp.MethodSetLevel: false, "tasks/cancel": false, "x/unknown": false,
	} {
		if got := u.repeatable(Request{Request: mcp.Request{Method: method}}); got != want {
			t.Errorf("%s: repeatable %v, want %v", method, got, want)
		}
	}
}

// One crash with many calls in flight is one failure and one restart.
func TestOneCrashCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		s.next = func(context.Context, config.Server, int) (*double, error) {
			d := &double{}
			d.do = func(context.Context, mcp.Request) ([]byte, error) {
				<-d.life.Done()
				return nil, transportError(true)
			}
			return d, nil
		}
		h := s.open(t, nil)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := h.Do(t.Context(), keyA, callTool("pay", nil)); !errors.Is(err, ErrOutcomeUnknown) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if st := stateOf(t, h, "a"); st.InFlight != 50 || st.RefCount != 50 || !st.Active {
			t.Errorf("in flight: %+v", st)
		}
		s.last().die()
		wg.Wait()
		st := stateOf(t, h, "a")
		if st.ConsecutiveFailures != 1 || st.RestartCount != 1 || st.Circuit != "closed" {
			t.Errorf("after one crash: %+v", st)
		}
	})
}

func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cancelled atomic.Int32
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{do: func(ctx context.Context, _ mcp.Request) ([]byte, error) {
				<-ctx.Done()
				cancelled.Add(1)
				if ours := (&deadline.TimeoutError{}); !errors.As(context.Cause(ctx), &ours) {
					return nil, transportError(true) // what a socket says when its caller leaves
				}
				return nil, fmt.Errorf("a: %w", context.Cause(ctx))
			}}, nil
		}}
		h := s.open(t, nil, func(s *config.Server) { s.Supervision.CircuitThreshold = 3 })
		began := time.Now()
		_, err := h.Do(t.Context(), keyA, callTool("slow", nil))
		wantErr(t, err, context.DeadlineExceeded)
		wantErr(t, err, ErrOutcomeUnknown)
		if took := time.Since(began); took != 60*time.Second {
			t.Errorf("gave up after %v", took)
		}
		// A caller's own deadline, or change of mind, says nothing about the server.
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = h.Do(ctx, keyA, callTool("slow", nil))
		wantErr(t, err, context.DeadlineExceeded)
		if st := stateOf(t, h, "a"); st.ConsecutiveFailures != 1 || st.RestartCount != 0 || !st.Active {
			t.Fatalf("%+v", st)
		}
		req := callTool("slow", nil)
		req.Timeout = 5 * time.Second
		for range 2 {
			began = time.Now()
			_, _ = h.Do(t.Context(), keyA, req)
			if took := time.Since(began); took != 5*time.Second {
				t.Errorf("gave up after %v, want the request's own 5s", took)
			}
		}
		synctest.Wait()
		// The third of ours opened the circuit, and the silent connection is gone.
		st := stateOf(t, h, "a")
		if st.Circuit != "open" || st.Active || st.RestartCount != 1 || !s.last().closed.Load() {
			t.Errorf("after three timeouts: %+v, closed %v", st, s.last().closed.Load())
		}
		_, err = h.Do(t.Context(), keyA, req)
		wantErr(t, err, ErrCircuitOpen)
		var e *Error
		if !errors.As(err, &e) || e.RetryAfter != 30*time.Second || e.Action != ActionReload {
			t.Errorf("%v, retry after %v", err, e.RetryAfter)
		}
		if cancelled.Load() != 4 {
			t.Errorf("%d requests reached the server, want 4", cancelled.Load())
		}
	})
}

// A person who is being asked does not use up the server's time.
func TestDeadlineRestsWhileAnswering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srvTime := 9 * time.Second
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{do: func(ctx context.Context, req mcp.Request) ([]byte, error) {
				time.Sleep(50 * time.Second)
				_, werr := req.OnRequest(ctx, mcp.MethodElicit, nil)
				if werr != nil {
					return nil, werr
				}
				if retry.Sleep(ctx, srvTime) != nil {
					return nil, context.Cause(ctx)
				}
				return []byte(`{}`), nil
			}}, nil
		}}
		h := s.open(t, nil)
		req := callTool("ask", nil)
		req.Answer = func(context.Context, string, []byte) ([]byte, *mcp.Error) {
			time.Sleep(time.Hour)
			return []byte(`{}`), nil
		}
		if _, err := h.Do(t.Context(), keyA, req); err != nil {
			t.Error(err)
		}
		srvTime = 11 * time.Second // with the 50 before the question: too many
		_, err := h.Do(t.Context(), keyA, req)
		wantErr(t, err, context.DeadlineExceeded)
	})
}

func TestRateLimit(t *testing.T) {
	tests := []struct {
		name       string
		retryAfter time.Duration
		deadline   time.Duration
		times      int // answers 429 before it works
		min, max   time.Duration
		ok         bool
	}{
		{"seconds", 2 * time.Second, 0, 1, 2 * time.Second, 2200 * time.Millisecond, true},
		{"not said", 0, 0, 1, time.Second, 1100 * time.Millisecond, true},
		{"huge", time.Hour, 0, 1, time.Minute, 66 * time.Second, true},
		{"longer than the deadline", 20 * time.Second, 10 * time.Second, 1, 0, 0, false},
		{"again", time.Second, 0, 2, time.Second, 1100 * time.Millisecond, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := tt.times
				s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
					return &double{do: func(context.Context, mcp.Request) ([]byte, error) {
						if left--; left >= 0 {
							return nil, &upstream.RateLimitedError{Server: "a", RetryAfter: tt.retryAfter}
						}
						return []byte(`{}`), nil
					}}, nil
				}}
				h := s.open(t, nil)
				ctx := t.Context()
				if tt.deadline > 0 {
					var stop context.CancelFunc
					ctx, stop = context.WithTimeout(ctx, tt.deadline)
					defer stop()
				}
				began := time.Now()
				_, err := h.Do(ctx, keyA, callTool("pay", nil))
				if took := time.Since(began); took < tt.min || took > tt.max {
					t.Errorf("took %v, want %v to %v", took, tt.min, tt.max)
				}
				if (err == nil) != tt.ok || !tt.ok && !errors.Is(err, upstream.ErrRateLimited) {
					t.Errorf("error %v", err)
				}
				if st := stateOf(t, h, "a"); st.ConsecutiveFailures != 0 || st.RestartCount != 0 {
					t.Errorf("429 counted: %+v", st)
				}
			})
		})
	}
}

// 64 callers at half-open: exactly one reaches the server.
func TestHalfOpenAdmitsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reached atomic.Int32
		healthy := false
		gate := make(chan struct{})
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{do: func(context.Context, mcp.Request) ([]byte, error) {
				if !healthy {
					return nil, &upstream.StatusError{Status: 500}
				}
				reached.Add(1)
				<-gate
				return []byte(`{}`), nil
			}}, nil
		}}
		h := s.open(t, nil)
		for range 5 {
			_, _ = h.Do(t.Context(), keyA, callTool("x", nil))
		}
		healthy = true
		time.Sleep(config.DefaultCircuitReset)
		var wg sync.WaitGroup
		var refused, passed atomic.Int32
		for range 64 {
			wg.Go(func() {
				switch _, err := h.Do(t.Context(), keyA, callTool("x", nil)); {
				case err == nil:
					passed.Add(1)
				case errors.Is(err, ErrCircuitOpen):
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		if st := stateOf(t, h, "a"); reached.Load() != 1 || st.Circuit != "half_open" {
			t.Errorf("%d reached the server while %s", reached.Load(), st.Circuit)
		}
		close(gate)
		wg.Wait()
		if passed.Load() != 1 || refused.Load() != 63 {
			t.Errorf("%d passed, %d refused", passed.Load(), refused.Load())
		}
		if st := stateOf(t, h, "a"); st.Circuit != "closed" {
			t.Errorf("circuit %s after a good probe", st.Circuit)
		}
	})
}
