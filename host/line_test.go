package host

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
)

// TestLine: what a line remembers never outlives the definition: not its replacement,
// not its end, not its return, and not the Host's.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(_ context.Context, srv config.Server, _ int) (*double, error) {
			return &double{do: func(context.Context, mcp.Request) ([]byte, error) { return []byte(srv.Args[0]), nil }}, nil
		}}
		h := newHost(nil, s.dial)
		defer h.Close()
		l := h.Line(keyA)
		says := func(want string) {
			t.Helper()
			for range 2 {
				if got, err := l.Do(t.Context(), callTool("x", nil)); err != nil || string(got) != want {
					t.Fatalf("%s, %v, want %s", got, err, want)
				}
			}
		}
		apply := func(args ...string) {
			var c config.Config
			for _, arg := range args {
				c.Servers = append(c.Servers, lazyServer("a", func(s *config.Server) { s.Args = []string{arg} }))
			}
			h.Apply(t.Context(), &c)
		}
		unknown := func() {
			t.Helper()
			_, err := l.Do(t.Context(), callTool("x", nil))
			wantErr(t, err, ErrUnknownServer)
			if _, known := l.Cached(); known {
				t.Error("it knows the tools of a server that is gone")
			}
		}
		unknown()
		apply("one")
		says("one")
		if _, err := l.Tools(t.Context()); err != nil {
			t.Error(err)
		}
		if _, known := l.Cached(); !known {
			t.Error("it does not know the tools that were read")
		}
		apply("two")
		says("two")
		l.Forget()
		says("two")
		apply()
		unknown()
		apply("three")
		says("three")
		if n := s.count("a"); n != 3 {
			t.Errorf("%d connections for three definitions", n)
		}
		h.Close()
		_, err := l.Do(t.Context(), callTool("x", nil))
		wantErr(t, err, ErrClosed)
	})
}
