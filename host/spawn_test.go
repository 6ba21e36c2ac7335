package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"testing/synctest"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// A server that wants a login is registered, and says so.
func TestSpawnNeedsLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return nil, &upstream.UnauthorizedError{Status: 401}
		}}
		h := s.open(t, nil)
		if err := h.Spawn(t.Context(), config.Server{Name: "b", Command: "server"}, nil); err != nil {
			t.Fatal(err)
		}
		if st := stateOf(t, h, "b"); st.State != NeedsAuth || st.Auth.Command != "log in to b" {
			t.Errorf("state %+v", st)
		}
	})
}

// A replacement that cannot be connected leaves the old server as it was, with its
// connection; one that can takes its place while requests in flight finish.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block, began := make(chan struct{}), make(chan struct{})
		s := &stage{next: func(_ context.Context, srv config.Server, _ int) (*double, error) {
			switch srv.Command {
			case "broken":
				return nil, &upstream.TransportError{Server: "b", Op: "start", Err: exec.ErrNotFound}
			case "old":
				return &double{do: func(context.Context, mcp.Request) ([]byte, error) {
					close(began)
					<-block
					return []byte(`{"from":"old"}`), nil
				}}, nil
			}
			return &double{do: func(context.Context, mcp.Request) ([]byte, error) { return []byte(`{"from":"new"}`), nil }}, nil
		}}
		h := s.open(t, nil)
		b := Key{Server: "b"}
		if err := h.Spawn(t.Context(), config.Server{Name: "b", Command: "old"}, nil); err != nil {
			t.Fatal(err)
		}
		replace := &SpawnOptions{Replace: true}
		if err := h.Spawn(t.Context(), config.Server{Name: "b", Command: "broken"}, replace); !errors.Is(err, exec.ErrNotFound) {
			t.Fatal(err)
		}
		old := make(chan string)
		go func() {
			raw, err := h.Do(t.Context(), b, callTool("x", nil))
			old <- fmt.Sprint(string(raw), err)
		}()
		<-began
		if n := s.count("b"); n != 2 {
			t.Errorf("%d dials: the old connection was lost", n)
		}
		if err := h.Spawn(t.Context(), config.Server{Name: "b", Command: "new"}, replace); err != nil {
			t.Fatal(err)
		}
		if raw, err := h.Do(t.Context(), b, callTool("x", nil)); err != nil || string(raw) != `{"from":"new"}` {
			t.Errorf("the replacement answers %s, %v", raw, err)
		}
		close(block)
		if got := <-old; got != `{"from":"old"}<nil>` {
			t.Errorf("the request in flight got %s", got)
		}
		if err := h.Remove("b"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Do(t.Context(), b, callTool("x", nil)); !errors.Is(err, ErrUnknownServer) {
			t.Errorf("after Remove: %v", err)
		}
	})
}
