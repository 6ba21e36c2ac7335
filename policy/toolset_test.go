package policy

import (
	"errors"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
)

// A list that several connections share is judged once for all of them, and again
// when one of them has read it again.
func TestSameList(t *testing.T) {
	at := time.Now()
	list := [][]byte{[]byte(`{"name":"a"}`)}
	set := &toolset{list: list, at: at}
	for _, tt := range []struct {
		name string
		c    host.Catalog
		want bool
	}{
		{"itself", host.Catalog{Tools: list, At: at}, true},
		{"read earlier over another connection", host.Catalog{Tools: list, At: at.Add(-time.Minute)}, true},
		{"read anew", host.Catalog{Tools: list, At: at.Add(time.Second)}, false},
		{"another list", host.Catalog{Tools: [][]byte{[]byte(`{"name":"b"}`)}, At: at}, false},
		{"no list", host.Catalog{At: at}, false},
	} {
		if got := set.sameList(tt.c); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// Without a connection the failure of the list is the failure of the call; a server that
// only refuses to list is called.
func TestListAndCallShareTheConnection(t *testing.T) {
	real := host.New(nil)
	defer real.Close()
	if err := real.Spawn(t.Context(), config.Server{Name: "a", Command: "/does/not/exist"}, &host.SpawnOptions{Lazy: true}); err != nil {
		t.Fatal(err)
	}
	_, gone := real.Tools(t.Context(), Key{Server: "a"})
	if !host.Unreached(gone) {
		t.Fatal(gone)
	}
	for name, tt := range map[string]struct {
		fails error
		calls int64
	}{
		"no connection": {gone, 0},
		"no list":       {&host.Error{Op: "list", Server: "a", Err: mcp.Errorf(mcp.CodeInternal, "no list today")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHost(simpleTool("echo"))
			g := openGate(t, h, nil, nil)
			h.mu.Lock()
			h.known, h.at, h.stale, h.fails = true, time.Now(), true, tt.fails
			h.mu.Unlock()
			_, err := g.Call(t.Context(), callOf("a", "echo"))
			if h.lists.Load() != 1 || h.calls.Load() != tt.calls {
				t.Errorf("%d lists and %d calls", h.lists.Load(), h.calls.Load())
			}
			if want := tt.calls == 0; errors.Is(err, tt.fails) != want {
				t.Errorf("the call says %v", err)
			}
		})
	}
}
