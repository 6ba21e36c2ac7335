package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

func TestOneCallIsOneStart(t *testing.T) {
	down := func(context.Context, config.Server, int) (*double, error) { return nil, transportError(true) }
	t.Run("no connection", func(t *testing.T) {
		s := &stage{next: down}
		h := s.open(t, nil)
		_, err := h.Do(t.Context(), keyA, callTool("x", nil))
		wantErr(t, err, ErrTransport)
		if !Unreached(err) {
			t.Errorf("%v does not say that there is no connection", err)
		}
		if st := stateOf(t, h, "a"); s.count("a") != 1 || st.RestartCount != 1 || st.ConsecutiveFailures != 1 {
			t.Errorf("%d starts, %+v", s.count("a"), st)
		}
	})
	t.Run("a connection that is lost", func(t *testing.T) {
		s := &stage{next: func(ctx context.Context, srv config.Server, n int) (*double, error) {
			if n > 1 {
				return down(ctx, srv, n)
			}
			return &double{do: func(context.Context, mcp.Request) ([]byte, error) { return nil, transportError(false) }}, nil
		}}
		h := s.open(t, nil)
		_, err := h.Do(t.Context(), keyA, callTool("x", nil))
		wantErr(t, err, ErrTransport)
		if st := stateOf(t, h, "a"); s.count("a") != 2 || st.RestartCount != 1 || st.ConsecutiveFailures != 1 {
			t.Errorf("%d starts, %+v", s.count("a"), st)
		}
	})
}

// A minute of outage under 20 calls a second, twice: at most 5 starts a minute, no
// ejection, and the first success is within 2 seconds of the return or when the next
// try was announced for.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flapping
		s := &stage{next: f.dial}
		var out syncBuffer
		h := s.open(t, &Options{Log: slog.New(slog.NewTextHandler(&out, nil))})
		defer func() {
			if t.Failed() {
				t.Log(out.String())
			}
		}()
		for range 2 {
			if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
				t.Fatal(err)
			}
			f.set(true)
			s.last().die()
			announced := callFor(t, h, time.Minute)
			f.set(false)
			back := time.Now()
			for {
				_, err := h.Do(t.Context(), keyA, callTool("x", nil))
				if err == nil {
					break
				}
				if time.Since(back) > 10*time.Minute {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Millisecond)
			}
			if late := time.Since(back); late > 2*time.Second && time.Now().After(announced.Add(time.Second)) {
				t.Errorf("the first success came %v after the return, announced for %v after it", late, announced.Sub(back))
			}
			time.Sleep(time.Second)
		}
		if st := stateOf(t, h, "a"); st.Ejected || st.RestartCount != 2 {
			t.Errorf("two outages: %+v", st)
		}
		if n := mostWithin(f.failed, time.Minute); n > 5 {
			t.Errorf("%d starts within a minute", n)
		}
	})
}

// flapping is a server that is away or works, and the times of the starts that failed.
type flapping struct {
	mu     sync.Mutex // guards what follows
	away   bool
	failed []time.Time
}

func (f *flapping) set(away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = away
}

// dial starts the program, which works or exits.
func (f *flapping) dial(context.Context, config.Server, int) (*double, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		f.failed = append(f.failed, time.Now())
		return nil, transportError(true)
	}
	return &double{}, nil
}

// The limit of starts holds across outages, however short: a server that works for a
// moment in between gets no starts on top of those that failed within the minute.
func TestStartsOfShortOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flapping
		s := &stage{next: f.dial}
		h := s.open(t, nil)
		callAsAnnounced(t, h)
		for range 4 {
			f.set(true)
			s.last().die()
			callFor(t, h, time.Second)
			f.set(false)
			callAsAnnounced(t, h)
		}
		if n := mostWithin(f.failed, time.Minute); n > 5 || len(f.failed) <= 5 {
			t.Errorf("%d failed starts within a minute, %d in all", n, len(f.failed))
		}
		if st := stateOf(t, h, "a"); st.Ejected || st.RestartCount != 4 || st.Circuit != "closed" {
			t.Errorf("four outages: %+v", st)
		}
	})
}

// callAsAnnounced calls, once more at the end of each backoff that is announced, until
// that works.
func callAsAnnounced(t *testing.T, h *Host) {
	t.Helper()
	for {
		_, err := h.Do(t.Context(), keyA, callTool("x", nil))
		if err == nil {
			return
		}
		var e *Error
		if !errors.As(err, &e) || e.RetryAfter <= 0 || e.RetryAfter > time.Minute || !errors.Is(err, ErrCircuitOpen) {
			t.Fatalf("no next try is announced: %v", err)
		}
		time.Sleep(e.RetryAfter)
	}
}

// Starts that lead to a connection are not limited, and a server that is started for
// each call gets as many tries in an outage as any other.
func TestStartsThatWorkAreNotLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flapping
		s := &stage{next: f.dial}
		h := s.open(t, nil, func(s *config.Server) { s.KeepAlive = 0 })
		for range 20 {
			if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if _, err := h.Version(t.Context(), keyA); err != nil { // needs a connection and sends nothing
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := s.count("a"); n != 40 {
			t.Fatalf("%d starts for 40 uses", n)
		}
		f.set(true)
		for i := range 5 {
			if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); errors.Is(err, ErrCircuitOpen) {
				t.Fatalf("call %d of the outage: %v", i+1, err)
			}
		}
		if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); !errors.Is(err, ErrCircuitOpen) {
			t.Errorf("after 5 failures: %v", err)
		}
	})
}

// A dial that may start the program twice, because it exits when it is asked which
// protocol it speaks, does so only where the limit has room for both.
func TestSecondStartOfADialIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Time
		s := &stage{}
		s.next = func(context.Context, config.Server, int) (*double, error) {
			opt := s.opts[len(s.opts)-1]
			starts = append(starts, time.Now())
			if !opt.OneStart {
				opt.OnStart()
				starts = append(starts, time.Now())
			}
			return nil, transportError(true)
		}
		h := s.open(t, nil)
		for range 10 {
			callFor(t, h, time.Minute)
		}
		if n := mostWithin(starts, time.Minute); n > 5 {
			t.Errorf("%d starts within a minute", n)
		}
		if len(starts) == s.count("a") || stateOf(t, h, "a").Ejected {
			t.Errorf("%d starts in %d dials: %+v", len(starts), s.count("a"), stateOf(t, h, "a"))
		}
	})
}

// callFor calls 20 times a second and returns when the last answer said the next try is.
func callFor(t *testing.T, h *Host, d time.Duration) (announced time.Time) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	defer wg.Wait()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		wg.Go(func() {
			_, err := h.Do(t.Context(), keyA, callTool("x", nil))
			if errors.Is(err, ErrEjected) {
				t.Error(err)
			}
			var e *Error
			if errors.As(err, &e) && e.RetryAfter > 0 {
				mu.Lock()
				defer mu.Unlock()
				announced = time.Now().Add(e.RetryAfter)
			}
		})
	}
	wg.Wait()
	return announced
}

// mostWithin is how many of the times are within one period.
func mostWithin(times []time.Time, period time.Duration) (most int) {
	slices.SortFunc(times, time.Time.Compare)
	first := 0
	for i, at := range times {
		for at.Sub(times[first]) >= period {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// syncBuffer is a log to look into while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Every change of state is one line that names the server, the reason and the next try.
func TestStateChangesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out syncBuffer
		s := crashing()
		h := s.open(t, &Options{Log: slog.New(slog.NewTextHandler(&out, nil))})
		k := Key{Server: "a", Account: "work"}
		for range 6 { // ejected
			if _, err := h.Tools(t.Context(), k); err != nil {
				t.Fatal(err)
			}
			_, _ = h.Do(t.Context(), k, callTool("x", nil))
			time.Sleep(time.Second)
		}
		s.next = func(context.Context, config.Server, int) (*double, error) { return nil, transportError(true) }
		time.Sleep(50 * time.Minute)
		_, _ = h.Do(t.Context(), k, callTool("x", nil))
		s.next = nil
		time.Sleep(10 * time.Minute)
		_, _ = h.Do(t.Context(), k, callTool("x", nil))
		log := out.String()
		for _, want := range []string{
			`level=INFO msg=connected server=a account=work protocol=2025-11-25`,
			`level=WARN msg="the connection failed" server=a account=work reason="a: receive (the request had been sent): reset" restart=1 max_restarts=5 next_try=`,
			`level=WARN msg="the server is ejected" server=a account=work reason="a: receive (the request had been sent): reset" restart=6 max_restarts=5 window=5m0s next_try=50m0s`,
			`level=INFO msg="the ejection is over, the next request tries to connect" server=a account=work`,
			`level=WARN msg="cannot connect" server=a account=work reason="a: receive (the request had been sent): reset" restart=1 max_restarts=5 next_try=`,
			`level=WARN msg="the circuit is open" server=a account=work reason="a: receive (the request had been sent): reset" failures=2 threshold=5 next_try=30s`,
			`level=INFO msg="the circuit is closed, the server works again" server=a account=work`,
		} {
			if !strings.Contains(log, want) {
				t.Errorf("the log lacks\n\t%s", want)
			}
		}
		if t.Failed() {
			t.Log(log)
		}
	})
}

// A server that comes and goes all the time fills neither the log nor a line of it.
func TestLogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out syncBuffer
		long := strings.Repeat("é", limit.ServerLogReason)
		s := &stage{next: func(_ context.Context, _ config.Server, n int) (*double, error) {
			if n%2 == 0 {
				return nil, &mcp.Error{Code: -1, Message: long}
			}
			return &double{}, nil
		}}
		h := s.open(t, &Options{Log: slog.New(slog.NewTextHandler(&out, nil))}, func(s *config.Server) {
			s.KeepAlive, s.Supervision.MaxRestarts = 0, 10_000
		})
		for range 200 {
			_, _ = h.Do(t.Context(), keyA, callTool("x", nil))
			synctest.Wait()
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) > 2*limit.ServerLogLines {
			t.Errorf("%d lines", len(lines))
		}
		for _, l := range lines {
			if len(l) > 2*limit.ServerLogReason {
				t.Errorf("a line of %d bytes", len(l))
			}
		}
		time.Sleep(time.Minute)
		_, _ = h.Do(t.Context(), keyA, callTool("x", nil))
		_, _ = h.Do(t.Context(), keyA, callTool("x", nil))
		if !strings.Contains(out.String(), "lines_dropped=") {
			t.Error("nothing says that lines were left out")
		}
	})
}
