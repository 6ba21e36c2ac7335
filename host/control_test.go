package host

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/mcp"
)

func TestApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{do: func(ctx context.Context, _ mcp.Request) ([]byte, error) {
				return []byte(`{}`), retry.Sleep(ctx, time.Second)
			}}, nil
		}}
		h := newHost(nil, s.dial)
		defer h.Close()
		before := &config.Config{Servers: []config.Server{lazyServer("changed"), lazyServer("gone"), lazyServer("same")}}
		if diff := cmp.Diff([]string{"changed", "gone", "same"}, h.Apply(t.Context(), before)); diff != "" {
			t.Error(diff)
		}
		var wg sync.WaitGroup
		for _, name := range h.Names() {
			wg.Go(func() {
				if _, err := h.Do(t.Context(), Key{Server: name}, callTool("x", nil)); err != nil {
					t.Errorf("in flight on %s: %v", name, err)
				}
			})
		}
		synctest.Wait()
		moved := lazyServer("same")
		moved.Origin.Line = 42
		after := &config.Config{Servers: []config.Server{
			lazyServer("changed", func(s *config.Server) { s.Args = []string{"--new"} }), moved,
			lazyServer("eager", func(s *config.Server) { s.Lazy = nil }),
		}}
		if diff := cmp.Diff([]string{"changed", "eager", "gone"}, h.Apply(t.Context(), after)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"changed", "eager", "same"}, h.Names()); diff != "" {
			t.Error(diff)
		}
		wg.Wait()
		synctest.Wait()
		for _, name := range []string{"changed", "same"} {
			if _, err := h.Do(t.Context(), Key{Server: name}, callTool("x", nil)); err != nil {
				t.Error(err)
			}
		}
		want := map[string]int{"changed": 2, "gone": 1, "same": 1, "eager": 1}
		if diff := cmp.Diff(want, s.dials); diff != "" {
			t.Errorf("dials (-want +got):\n%s", diff)
		}
		if srv, ok := h.Server("changed"); !ok || len(srv.Args) != 1 {
			t.Errorf("%+v, %v", srv.Args, ok)
		}
		_, err := h.Do(t.Context(), Key{Server: "gone"}, callTool("x", nil))
		wantErr(t, err, ErrUnknownServer)
	})
}

// Reload and Apply a hundred times under load: no call is lost.
func TestReloadUnderLoad(t *testing.T) {
	for _, how := range []string{"reload", "apply"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stage{next: func(ctx context.Context, _ config.Server, _ int) (*double, error) {
					d := &double{do: func(ctx context.Context, _ mcp.Request) ([]byte, error) {
						return []byte(`{}`), retry.Sleep(ctx, 70*time.Millisecond)
					}}
					return d, retry.Sleep(ctx, 30*time.Millisecond)
				}}
				h := s.open(t, &Options{MaxConnected: 20})
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				calls := make([]int, 32)
				for i := range calls {
					wg.Go(func() {
						for ctx.Err() == nil {
							if _, err := h.Do(t.Context(), keyA, callTool("pay", nil)); err != nil {
								t.Errorf("lost: %v", err)
								return
							}
							calls[i]++
						}
					})
				}
				for i := range 100 {
					time.Sleep(17 * time.Millisecond)
					if how == "reload" {
						if err := h.Reload(t.Context(), "a"); err != nil {
							t.Fatal(err)
						}
						continue
					}
					h.Apply(t.Context(), &config.Config{Servers: []config.Server{lazyServer("a", func(s *config.Server) { s.Args = []string{fmt.Sprint(i)} })}})
				}
				stop()
				wg.Wait()
				for i, n := range calls {
					if n == 0 {
						t.Errorf("caller %d never got through", i)
					}
				}
			})
		})
	}
}

func TestStatusShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		h := s.open(t, nil)
		mustSpawn(t, h, lazyServer("web", webServer))
		if _, err := h.Tools(t.Context(), keyA); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(h.Status())
		if err != nil {
			t.Fatal(err)
		}
		want := `{"servers":[` +
			`{"name":"a","account":"","state":"connected","transport":"stdio","protocol_version":"2025-11-25","active":true,"lazy":true,"ref_count":0,"in_flight":0,"restart_count":0,"consecutive_failures":0,"circuit":"closed","ejected":false,"cache_entries":0,"tools":1,"stale":false,"last_error":"","auth":{"state":"none"}},` +
			`{"name":"web","account":"","state":"disconnected","transport":"http","protocol_version":"","active":false,"lazy":true,"ref_count":0,"in_flight":0,"restart_count":0,"consecutive_failures":0,"circuit":"closed","ejected":false,"cache_entries":0,"tools":0,"stale":false,"last_error":"","auth":{"state":"none"}}]}`
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		h.Close()
		if got, _ := json.Marshal(newHost(nil, s.dial).Status()); string(got) != `{"servers":[]}` {
			t.Errorf("no servers: %s", got)
		}
	})
}

func TestNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		h := s.open(t, nil)
		if err := h.Notify(t.Context(), keyA, "notifications/roots/list_changed", nil); err != nil || s.count("a") != 0 {
			t.Errorf("nobody is connected: %v, %d dials", err, s.count("a"))
		}
		_, _ = h.Do(t.Context(), keyA, callTool("x", nil))
		if err := h.Notify(t.Context(), keyA, "notifications/roots/list_changed", nil); err != nil || s.last().notes.Load() != 1 {
			t.Errorf("%v, told %d times", err, s.last().notes.Load())
		}
		wantErr(t, h.Notify(t.Context(), Key{Server: "b"}, "x", nil), ErrUnknownServer)
	})
}
