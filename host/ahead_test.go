package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/retry"
)

// A request finds the connection that was begun ahead of it, and nothing but that.
func TestAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(ctx context.Context, _ config.Server, _ int) (*double, error) {
			return &double{}, retry.Sleep(ctx, 5*time.Second)
		}}
		h := s.open(t, nil, func(srv *config.Server) { srv.KeepAlive = time.Second })
		began := time.Now()
		h.Ahead(t.Context(), keyA)
		h.Ahead(t.Context(), keyA)
		if took := time.Since(began); took > 0 {
			t.Errorf("it waits for %v", took)
		}
		time.Sleep(3 * time.Second)
		impatient, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := h.Do(impatient, keyA, callTool("x", nil)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the impatient got %v", err)
		}
		time.Sleep(time.Hour) // longer than the connection would be kept
		h.Ahead(t.Context(), keyA)
		for range 3 {
			if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
				t.Fatal(err)
			}
		}
		if n, calls := s.count("a"), s.last().calls.Load(); n != 1 || calls != 3 {
			t.Errorf("%d dials and %d calls, want 1 and 3", n, calls)
		}
		time.Sleep(10 * time.Second)
		if !s.last().closed.Load() {
			t.Error("after the requests it is not closed as idle")
		}
	})
}

// What goes wrong ahead is what the request would have met with, counted once.
func TestAheadFails(t *testing.T) {
	run := func(t *testing.T, first func(*Host), next func(n int) (*double, error), opt *Options) (dials int, err error) {
		synctest.Test(t, func(t *testing.T) {
			s := &stage{next: func(_ context.Context, _ config.Server, n int) (*double, error) { return next(n) }}
			h := s.open(t, opt)
			first(h)
			synctest.Wait()
			_, err = h.Do(t.Context(), keyA, callTool("x", nil))
			dials = s.count("a")
		})
		return dials, err
	}
	ahead := func(h *Host) { h.Ahead(t.Context(), keyA) }
	for name, next := range map[string]func(n int) (*double, error){
		"always": func(int) (*double, error) { return nil, transportError(false) },
		"once": func(n int) (*double, error) {
			if n == 1 {
				return nil, transportError(false)
			}
			return &double{}, nil
		},
	} {
		want, wantErr := run(t, func(*Host) {}, next, nil)
		got, err := run(t, ahead, next, nil)
		if got != want || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("%s: %d dials, %v; without it %d, %v", name, got, err, want, wantErr)
		}
	}
	held := &Options{Approved: func(context.Context, config.Server) error { return errors.New("not yet") }}
	if n, err := run(t, ahead, nil, held); n != 0 || !errors.Is(err, ErrHeldBack) {
		t.Errorf("a server that nobody has approved: %d dials, %v", n, err)
	}
}

// A connection that ends before anybody used it is made again, and one that nobody
// came for goes with the Host.
func TestAheadInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		h := s.open(t, nil)
		h.Ahead(t.Context(), keyA)
		synctest.Wait()
		s.last().die()
		if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil || s.count("a") != 2 {
			t.Errorf("%v, %d dials", err, s.count("a"))
		}
		mustSpawn(t, h, lazyServer("b"))
		h.Ahead(t.Context(), Key{Server: "b"})
		h.Ahead(t.Context(), Key{Server: "nobody"})
		synctest.Wait()
		h.Close()
		if !s.last().closed.Load() {
			t.Error("it is left")
		}
		h.Ahead(t.Context(), keyA)
	})
}
