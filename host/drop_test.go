package host

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// A list that is stored between the choice of the pool and the drop is not counted any
// more when nothing has it.
func TestDroppedListsAreNotCounted(t *testing.T) {
	pool := newLists()
	pool.Max = 150
	first, other := &catalog{pool: pool, owner: "a"}, &catalog{pool: pool, owner: "b"}
	store := func(c *catalog, name string) {
		c.store(mcp.MethodToolsList, upstream.List{Items: [][]byte{[]byte(name + strings.Repeat("x", 100-len(name)))}}, nil, 0)
	}
	store(first, "one")
	store(other, "two")
	chosen := pool.Overdue(other)
	if len(chosen) != 1 || chosen[0] != first {
		t.Fatalf("%d catalogs are chosen, want the first one", len(chosen))
	}
	store(first, "three")
	first.drop()
	if got := pool.Bytes(); got != 100 {
		t.Errorf("%d bytes are counted, want 100", got)
	}
}

// dropping remembers nothing. It calls during while a list is being kept.
type dropping struct {
	noMemory
	during func(Key)
}

func (d *dropping) RememberTools(_ context.Context, k Key, _ string, _ Catalog) {
	d.during(k)
}

// A list that is dropped for others before its reader has seen it is still shown: an agent
// never gets an empty list in its place.
func TestDroppedListIsShown(t *testing.T) {
	var h *Host
	reads := 0
	victim := Key{Principal: "victim", Server: "a"}
	s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
		return &double{list: func(context.Context, string) (upstream.List, error) {
			reads++
			def := fmt.Sprintf(`{"name":"tool%d","description":%q}`, reads, strings.Repeat("x", 1000))
			return upstream.List{Items: [][]byte{[]byte(def)}, Received: time.Now()}, nil
		}}, nil
	}}
	drops := 1
	m := &dropping{during: func(k Key) {
		if k.Principal == "victim" && drops > 0 {
			drops--
			u, err := h.unit(k)
			if err != nil {
				t.Error(err)
				return
			}
			u.catalog.drop()
		}
	}}
	h = s.open(t, &Options{Memory: m})
	c, err := h.Tools(t.Context(), victim)
	if err != nil || len(c.Tools) != 1 {
		t.Errorf("%d tools, %v; want 1", len(c.Tools), err)
	}
	drops = 1000 // always
	u, err := h.unit(victim)
	if err != nil {
		t.Fatal(err)
	}
	u.catalog.drop()
	if c, err := h.Tools(t.Context(), victim); err != nil || len(c.Tools) != 1 {
		t.Errorf("always dropped: %d tools, %v; want 1", len(c.Tools), err)
	}
	if reads > 2 {
		t.Errorf("the server was asked %d times, want 2", reads)
	}
}
