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

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

func named(names ...string) [][]byte {
	items := [][]byte{}
	for _, n := range names {
		items = append(items, fmt.Appendf(nil, `{"name":%q}`, n))
	}
	return items
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

// When a list is read again, and when not.
func TestFreshness(t *testing.T) {
	const announced = `{"tools":{"listChanged":true}}`
	tests := []struct {
		name, version, caps string
		ttl                 time.Duration
		between             func(t *testing.T, h *Host, d *double, notify func(method string))
		want                int // lists read in all
	}{
		{name: "no word about changes", version: mcp.LatestLegacy, caps: `{"tools":{}}`, want: 2},
		{name: "changes are announced", version: mcp.LatestLegacy, caps: announced, want: 1},
		{name: "modern, announced", version: mcp.Latest, caps: announced, want: 1},
		{
			name: "announced long ago", version: mcp.LatestLegacy, caps: announced, want: 2,
			between: func(t *testing.T, h *Host, _ *double, _ func(string)) {
				release, err := h.Hold(t.Context(), keyA)
				if err != nil {
					t.Fatal(err)
				}
				pass(maxQuiet + time.Second)
				release()
			},
		},
		{
			name: "a change", version: mcp.LatestLegacy, caps: announced, want: 2,
			between: func(_ *testing.T, _ *Host, _ *double, notify func(string)) { notify(mcp.MethodNotifyTools) },
		},
		{
			name: "another list's change", version: mcp.LatestLegacy, caps: announced, want: 1,
			between: func(_ *testing.T, _ *Host, _ *double, notify func(string)) { notify(mcp.MethodNotifyPrompts) },
		},
		{
			name: "reconnected", version: mcp.LatestLegacy, caps: announced, want: 2,
			between: func(t *testing.T, h *Host, d *double, _ func(string)) { d.die(); synctest.Wait() },
		},
		{
			name: "kept for a while", version: mcp.LatestLegacy, caps: `{}`, ttl: time.Minute, want: 1,
			between: func(t *testing.T, h *Host, d *double, _ func(string)) { d.die(); pass(59 * time.Second) },
		},
		{
			name: "kept too long", version: mcp.LatestLegacy, caps: `{}`, ttl: time.Minute, want: 2,
			between: func(*testing.T, *Host, *double, func(string)) { pass(time.Minute) },
		},
		{
			name: "reloaded", version: mcp.LatestLegacy, caps: announced, ttl: time.Hour, want: 2,
			between: func(t *testing.T, h *Host, _ *double, _ func(string)) { _ = h.Reload(t.Context(), "a") },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lists atomic.Int32
				s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
					return &double{version: tt.version, caps: tt.caps, list: func(context.Context, string) (upstream.List, error) {
						lists.Add(1)
						return upstream.List{Items: named("x"), TTL: tt.ttl, Received: time.Now()}, nil
					}}, nil
				}}
				h := s.open(t, nil)
				for i := range 2 {
					c, err := h.Tools(t.Context(), keyA)
					if err != nil || len(c.Tools) != 1 || c.Stale {
						t.Fatalf("round %d: %+v, %v", i, c, err)
					}
					if i == 0 && tt.between != nil {
						tt.between(t, h, s.last(), func(method string) { s.opts[0].OnNotification(mcp.Message{Method: method}) })
					}
				}
				if int(lists.Load()) != tt.want {
					t.Errorf("%d lists read, want %d", lists.Load(), tt.want)
				}
			})
		})
	}
}

// A change that is announced while the list is being read is not lost.
func TestChangeWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		n := 0
		s.next = func(context.Context, config.Server, int) (*double, error) {
			return &double{caps: `{"tools":{"listChanged":true}}`, list: func(context.Context, string) (upstream.List, error) {
				if n++; n == 1 {
					s.opts[0].OnNotification(mcp.Message{Method: mcp.MethodNotifyTools})
				}
				return upstream.List{Items: named(fmt.Sprint("v", n)), Received: time.Now()}, nil
			}}, nil
		}
		h := s.open(t, nil)
		first, _ := h.Tools(t.Context(), keyA)
		second, err := h.Tools(t.Context(), keyA)
		if err != nil || !first.Stale || second.Stale || string(second.Tools[0]) != `{"name":"v2"}` {
			t.Errorf("%v: first %+v, second %+v", err, first, second)
		}
	})
}

func TestListsAreSharedAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bus event.Bus[event.Event]
		news := bus.Subscribe(0)
		memory := newMemory()
		fail := false
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			if fail {
				return nil, transportError(false)
			}
			return &double{version: mcp.Latest, caps: `{"prompts":{}}`, list: func(_ context.Context, method string) (upstream.List, error) {
				time.Sleep(time.Second)
				return upstream.List{Items: named(method), Received: time.Now()}, nil
			}}, nil
		}}
		h := s.open(t, &Options{Memory: memory, Events: &bus})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := h.Tools(t.Context(), keyA); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := s.last().lists.Load(); n != 1 {
			t.Errorf("%d lists for 20 callers at once", n)
		}
		if c, err := h.List(t.Context(), keyA, mcp.MethodPromptsList); err != nil || len(c.Prompts) != 1 {
			t.Errorf("prompts: %+v, %v", c, err)
		}
		// Not declared, so not asked for, and known to be empty.
		if c, err := h.List(t.Context(), keyA, mcp.MethodResourcesList); err != nil || c.Resources == nil || s.last().lists.Load() != 2 {
			t.Errorf("resources: %+v, %v", c, err)
		}
		bus.Close()
		var events []string
		for e := range news.All(t.Context()) {
			if c, ok := e.(event.ToolsChanged); ok {
				events = append(events, fmt.Sprint(c.List, c.Count))
			}
		}
		if diff := cmp.Diff([]string{"tools1", "prompts1", "resources0"}, events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		h.Close()

		// The next process: known without a connection, and shown when there is none.
		fail = true
		h = s.open(t, &Options{Memory: memory})
		c, ok := h.Cached(keyA)
		if !ok || len(c.Tools) != 1 || c.Stale || c.Version != mcp.Latest || len(c.Prompts) != 1 {
			t.Errorf("cached: %+v, %v", c, ok)
		}
		if st := stateOf(t, h, "a"); st.Tools != 1 || st.Active {
			t.Errorf("%+v", st)
		}
		c, err := h.Tools(t.Context(), keyA)
		if err != nil || !c.Stale || len(c.Tools) != 1 || !errors.Is(c.Problem, upstream.ErrTransport) {
			t.Errorf("unreachable: %+v, %v", c, err)
		}
		fail = false
		c, err = h.Tools(t.Context(), keyA)
		if err != nil || c.Stale || c.Problem != nil {
			t.Errorf("reachable again: %+v, %v", c, err)
		}
		if s.opts[len(s.opts)-1].Version != mcp.Latest {
			t.Error("the era was not remembered")
		}
		if l := s.last().learned.Load(); l == nil || len(*l) != 1 {
			t.Error("the connection was not told the known tools")
		}
	})
}

// The modern era has to be asked for news of changes; they come on that stream.
// TestChangesBeforeTheSubscription: a list that was read before the server has
// acknowledged the subscription may have changed unheard, and is read again.
// TestChangesWithoutTheStream: while the stream of announcements is interrupted, a list
// is read each time.
// TestCatalogsOfOneServerAreLimited: a server that lists other tools in each session
// does not fill the memory; those of the sessions that asked last are kept.
// noMemory remembers nothing.
func TestUnknownNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{
				list: func(context.Context, string) (upstream.List, error) {
					return upstream.List{Items: named("create_issue", "close_issue"), Received: time.Now()}, nil
				},
				do: func(_ context.Context, req mcp.Request) ([]byte, error) {
					return nil, mcp.Errorf(mcp.CodeInvalidParams, "unknown tool, or bad arguments")
				},
			}, nil
		}}
		h := s.open(t, nil)
		mustSpawn(t, h, lazyServer("github"))
		k := Key{Server: "gitub"}
		_, doErr := h.Do(t.Context(), k, callTool("x", nil))
		_, toolsErr := h.Tools(t.Context(), k)
		for _, err := range []error{doErr, toolsErr, h.Stop("gitub"), h.Reload(t.Context(), "gitub")} {
			wantErr(t, err, ErrUnknownServer)
			if want := `no server named "gitub" is configured; did you mean "github"?`; said(err) != want {
				t.Errorf("%q, want %q", err, want)
			}
		}
		if _, ok := h.Cached(k); ok {
			t.Error("a catalog of nobody")
		}
		_, err := h.Do(t.Context(), keyA, callTool("create_isue", nil))
		if errors.Is(err, ErrUnknownTool) {
			t.Errorf("nothing is known of its tools, yet: %v", err)
		}
		_, _ = h.Tools(t.Context(), keyA)
		_, err = h.Do(t.Context(), keyA, callTool("create_isue", nil))
		wantErr(t, err, ErrUnknownTool)
		var answer *mcp.Error
		if !errors.As(err, &answer) || said(err) != `a has no tool named "create_isue"; did you mean "create_issue"?` {
			t.Errorf("%q", err)
		}
		_, err = h.Do(t.Context(), keyA, callTool("close_issue", nil))
		if errors.Is(err, ErrUnknownTool) || !errors.As(err, &answer) {
			t.Errorf("bad arguments became %v", err)
		}
	})
}

// Whose the connection is decides everything: no two keys share one.
func TestKeysAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(_ context.Context, _ config.Server, n int) (*double, error) {
			return &double{do: func(context.Context, mcp.Request) ([]byte, error) {
				return fmt.Appendf(nil, `%d`, n), nil
			}}, nil
		}}
		h := s.open(t, nil)
		keys := []Key{
			{Server: "a"},
			{Server: "a", Account: "work"},
			{Server: "a", Principal: "eve"},
			{Server: "a", Principal: "eve", Account: "work"},
			{Server: "a", Lane: "session-1"},
		}
		for range 2 {
			for i, k := range keys {
				if got, err := h.Do(t.Context(), k, callTool("x", nil)); err != nil || string(got) != fmt.Sprint(i+1) {
					t.Errorf("%+v: connection %s, %v", k, got, err)
				}
			}
		}
		if got, _ := h.Do(t.Context(), Key{Server: "a", Principal: Local}, callTool("x", nil)); string(got) != "1" {
			t.Error("the local user is not the one without a name")
		}
		if n := len(h.Status().Servers); n != len(keys) {
			t.Errorf("%d rows of status", n)
		}
		h.Release(keys[4])
		synctest.Wait()
		if n := len(h.Status().Servers); n != len(keys)-1 || !s.made[4].closed.Load() {
			t.Errorf("%d rows after Release, closed %v", n, s.made[4].closed.Load())
		}
	})
}

// Servers that announce changes when they start are read twice and count.
