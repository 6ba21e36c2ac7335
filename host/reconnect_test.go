package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
)

// A login of one account drops the connections of that account only, those of all its
// lanes, and clears nobody's circuit or ejection.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := false
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{do: func(context.Context, mcp.Request) ([]byte, error) {
				if fails {
					return nil, transportError(true)
				}
				return []byte(`{}`), nil
			}}, nil
		}}
		h := s.open(t, nil, func(s *config.Server) { s.Supervision.MaxRestarts = 1000 })
		bob, work, lane, alice := Key{Principal: "bob", Server: "a"}, Key{Principal: "bob", Server: "a", Account: "work"},
			Key{Principal: "bob", Server: "a", Lane: "l"}, Key{Principal: "alice", Server: "a"}
		call := func(k Key) error {
			_, err := h.Do(t.Context(), k, callTool("x", nil))
			return err
		}
		conns := map[Key]*double{}
		for _, k := range []Key{bob, work, lane, alice} {
			if err := call(k); err != nil {
				t.Fatal(err)
			}
			conns[k] = s.last()
		}
		if err := h.Reconnect(t.Context(), Key{Principal: "bob", Server: "a"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for k, want := range map[Key]bool{bob: true, lane: true, work: false, alice: false} {
			if got := conns[k].closed.Load(); got != want {
				t.Errorf("%+v: closed %v, want %v", k, got, want)
			}
		}
		fails = true
		for errors.Is(call(bob), ErrOutcomeUnknown) || errors.Is(call(alice), ErrOutcomeUnknown) {
		}
		wantErr(t, call(bob), ErrCircuitOpen)
		wantErr(t, call(alice), ErrCircuitOpen)
		for range 3 {
			if err := h.Reconnect(t.Context(), bob); err != nil {
				t.Fatal(err)
			}
		}
		wantErr(t, call(alice), ErrCircuitOpen)
		wantErr(t, call(bob), ErrCircuitOpen)
		wantErr(t, h.Reconnect(t.Context(), Key{Server: "b"}), ErrUnknownServer)
	})
}

// A server that was ejected stays so: a login says nothing about its health.
func TestReconnectKeepsEjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		h := s.open(t, nil, func(s *config.Server) { s.Supervision.MaxRestarts, s.Supervision.CircuitThreshold = 1, 1000 })
		for range 2 {
			if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
				t.Fatal(err)
			}
			s.last().die()
			synctest.Wait()
		}
		if st := stateOf(t, h, "a"); !st.Ejected {
			t.Fatalf("not ejected: %+v", st)
		}
		if err := h.Reconnect(t.Context(), keyA); err != nil {
			t.Fatal(err)
		}
		if st := stateOf(t, h, "a"); !st.Ejected || st.State != Ejected {
			t.Errorf("after a login: %+v", st)
		}
		_, err := h.Do(t.Context(), keyA, callTool("x", nil))
		wantErr(t, err, ErrEjected)
	})
}
