package host

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// diary counts what is written down.
type diary struct {
	*memory
	tools atomic.Int32
}

func (d *diary) RememberTools(ctx context.Context, k Key, digest string, c Catalog) {
	d.tools.Add(1)
	d.memory.RememberTools(ctx, k, digest, c)
}

// A list that is good for a minute is read every minute, but what did not change is
// not written down each time.
func TestKeepAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := upstream.List{Items: named("x"), TTL: time.Minute}
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{version: mcp.Latest, list: func(context.Context, string) (upstream.List, error) {
				now := list
				now.Received = time.Now()
				return now, nil
			}}, nil
		}}
		d := &diary{memory: newMemory()}
		h := s.open(t, &Options{Memory: d})
		read := func(minutes int) {
			t.Helper()
			for range minutes {
				before := s.last().lists.Load()
				time.Sleep(time.Minute)
				if _, err := h.Tools(t.Context(), keyA); err != nil || s.last().lists.Load() != before+1 {
					t.Fatalf("not read again: %v", err)
				}
			}
		}
		want := func(when string, n int32) {
			t.Helper()
			if got := d.tools.Load(); got != n {
				t.Errorf("%s: written %d times, want %d", when, got, n)
			}
		}
		if _, err := h.Tools(t.Context(), keyA); err != nil {
			t.Fatal(err)
		}
		want("first", 1)
		read(9)
		want("unchanged", 1)
		read(1)
		want("ten minutes later", 2)
		list.Items = named("x", "y")
		read(1)
		want("another tool", 3)
		list.TTL = 50 * time.Second
		read(1)
		want("good for another time", 4)
		list.Public = true
		read(1)
		want("good for everybody", 5)
		read(1)
		want("unchanged again", 5)
		s.last().end()
		time.Sleep(time.Minute)
		if _, err := h.Tools(t.Context(), keyA); err != nil {
			t.Fatal(err)
		}
		want("connected anew", 6)
		read(1)
		want("unchanged since then", 6)
	})
}
