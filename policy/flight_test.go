package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
)

// slowly makes every answer take a second, and end with its context.
func slowly(w *cacheWorld) {
	answer := w.h.do
	w.h.do = func(ctx context.Context, k host.Key, req host.Request) ([]byte, error) {
		select {
		case <-time.After(time.Second):
			return answer(ctx, k, req)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// warm makes the gate know that tool x of s declares a ttlMs.
func warm(w *cacheWorld) {
	w.asked(Call{Key: Key{Server: "s"}, Tool: "x", Arguments: []byte(`{"warm":1}`)})
	slowly(w)
}

func TestIdenticalCallsCollapse(t *testing.T) {
	inCacheWorld(t, `,"ttlMs":5000`, func(w *cacheWorld) {
		warm(w)
		before := w.n.Load()
		var results sync.Map
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				args := fmt.Sprintf(`{"a":1%s}`, []string{"", " "}[i%2])
				res, err := w.g.Call(w.Context(), Call{Key: Key{Server: "s"}, Tool: "x", Arguments: []byte(args)})
				if first, _ := results.LoadOrStore("own", string(res.Raw)); err != nil || first != string(res.Raw) {
					t.Errorf("%s, %v; another got %s", res.Raw, err, first)
				}
			})
			wg.Go(func() { // somebody else's call is not theirs
				if _, err := w.g.Call(w.Context(), Call{Caller: As("ann"), Key: Key{Server: "s"}, Tool: "x", Arguments: []byte(`{"a":2}`)}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := w.n.Load() - before; n != 2 {
			t.Errorf("%d requests for 2 questions", n)
		}
		if n := w.g.CacheStats().Collapsed; n != 98 {
			t.Errorf("%d collapsed, want 98", n)
		}
	})
}

// The first caller's leaving must not fail the others; the last one's ends the
// request.
func TestCollapsedCallOutlivesItsFirstCaller(t *testing.T) {
	inCacheWorld(t, `,"ttlMs":5000`, func(w *cacheWorld) {
		warm(w)
		first, leave := context.WithCancel(w.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := w.g.Call(first, callOf("s", "x")); !errors.Is(err, context.Canceled) {
				t.Errorf("the first: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if res, err := w.g.Call(w.Context(), callOf("s", "x")); err != nil || !res.Cached {
				t.Errorf("the second: %+v, %v", res, err)
			}
		})
		synctest.Wait()
		leave()
		wg.Wait()
		if n := w.n.Load(); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}

func TestCollapsedCallEndsWithItsLastCaller(t *testing.T) {
	inCacheWorld(t, `,"ttlMs":5000`, func(w *cacheWorld) {
		warm(w)
		ctx, leave := context.WithCancel(w.Context())
		began := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { _, _ = w.g.Call(ctx, callOf("s", "x")) })
		}
		synctest.Wait()
		leave()
		wg.Wait()
		w.g.flights.wg.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("the request went on for %v", took)
		}
		w.check("a later call", w.asked(callOf("s", "x")), true)
	})
}

// An answer that is not to be kept belongs to the one who asked.
func TestUnkeepableAnswersAreNotShared(t *testing.T) {
	for _, extra := range []string{`,"isError":true,"ttlMs":5000`, ``, `,"resultType":"input_required","ttlMs":5000`} {
		inCacheWorld(t, `,"ttlMs":5000`, func(w *cacheWorld) {
			warm(w)
			w.extra = extra
			seen := map[string]bool{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() {
					res, err := w.g.Call(w.Context(), callOf("s", "x"))
					mu.Lock()
					defer mu.Unlock()
					if err != nil || seen[string(res.Raw)] {
						t.Errorf("%s, %v: shared", res.Raw, err)
					}
					seen[string(res.Raw)] = true
				})
			}
			wg.Wait()
		})
	}
}

func TestCollapsedFailureIsTriedByTheOthers(t *testing.T) {
	inCacheWorld(t, `,"ttlMs":5000`, func(w *cacheWorld) {
		warm(w)
		answer := w.h.do
		first := true
		var mu sync.Mutex
		w.h.do = func(ctx context.Context, k host.Key, req host.Request) ([]byte, error) {
			mu.Lock()
			fail := first
			first = false
			mu.Unlock()
			raw, err := answer(ctx, k, req)
			if fail {
				return nil, host.ErrOutcomeUnknown
			}
			return raw, err
		}
		errs := make([]error, 3)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { _, errs[i] = w.g.Call(w.Context(), callOf("s", "x")) })
		}
		wg.Wait()
		failed := 0
		for _, err := range errs {
			if err != nil {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("%d of 3 failed, want the one whose request it was: %v", failed, errs)
		}
	})
}

// Nobody who has left is told or asked anything.
func TestHooksOfACallerThatLeft(t *testing.T) {
	inCacheWorld(t, `,"ttlMs":5000`, func(w *cacheWorld) {
		warm(w)
		w.h.do = func(ctx context.Context, _ host.Key, req host.Request) ([]byte, error) {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			req.OnNotification(mcp.Message{})
			if _, err := req.OnRequest(ctx, mcp.MethodElicit, nil); err == nil {
				t.Error("a caller that left was asked")
			}
			return []byte(`{"ttlMs":5000}`), nil
		}
		c := callOf("s", "x")
		c.OnNotification = func(mcp.Message) { t.Error("a caller that left was told") }
		c.OnRequest = func(context.Context, string, []byte) ([]byte, *mcp.Error) { return []byte(`{}`), nil }
		ctx, leave := context.WithCancel(w.Context())
		other, leaveToo := context.WithTimeout(w.Context(), 1500*time.Millisecond)
		defer leaveToo()
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = w.g.Call(ctx, c) })
		synctest.Wait()
		// The second waits on, and asks for itself when the first one's answer
		// turns out to be that one's only; then it leaves as well.
		wg.Go(func() { _, _ = w.g.Call(other, c) })
		synctest.Wait()
		leave()
		wg.Wait()
	})
}

func TestCloseEndsSharedCalls(t *testing.T) {
	inCacheWorld(t, `,"ttlMs":5000`, func(w *cacheWorld) {
		warm(w)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = w.g.Call(w.Context(), callOf("s", "x")) })
		synctest.Wait()
		w.g.Close(w.Context())
		wg.Wait()
		if _, err := w.g.Call(w.Context(), callOf("s", "x")); err != nil {
			t.Errorf("a call after Close: %v", err)
		}
	})
}
