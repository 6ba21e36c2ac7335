package host

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/upstream"
)

func TestCatalogsOfOneServerAreLimited(t *testing.T) {
	const most = 64 << 10
	var n atomic.Int32
	s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
		return &double{list: func(context.Context, string) (upstream.List, error) {
			def := fmt.Sprintf(`{"name":"tool%d","description":%q}`, n.Add(1), strings.Repeat("x", most/8))
			return upstream.List{Items: [][]byte{[]byte(def)}, Received: time.Now()}, nil
		}}, nil
	}}
	h := s.open(t, &Options{Memory: noMemory{}, MaxConnected: 100})
	lists := h.servers["a"].lists
	if lists.Max != limit.CatalogBytes {
		t.Errorf("%d bytes of lists are kept, want %d", lists.Max, limit.CatalogBytes)
	}
	lists.Max = most
	kept := func() (lanes []int) {
		for i := range 20 {
			if c, ok := h.Cached(Key{Server: "a", Lane: fmt.Sprint(i)}); ok && len(c.Tools) > 0 {
				lanes = append(lanes, i)
			}
		}
		return lanes
	}
	for i := range 20 {
		if c, err := h.Tools(t.Context(), Key{Server: "a", Lane: fmt.Sprint(i)}); err != nil || len(c.Tools) != 1 {
			t.Fatal(err)
		}
	}
	if got := kept(); len(got) == 0 || len(got) > 8 || got[len(got)-1] != 19 {
		t.Errorf("the lists of %v are kept", got)
	}
	for i := range 20 { // what is released makes room again
		h.Release(Key{Server: "a", Lane: fmt.Sprint(i)})
	}
	if left := lists.Bytes(); left != 0 {
		t.Errorf("%d bytes are kept after the release of all", left)
	}
}

type noMemory struct{}

func (noMemory) Era(context.Context, string) (string, bool)          { return "", false }
func (noMemory) RememberEra(context.Context, string, string)         {}
func (noMemory) Tools(context.Context, Key, string) (Catalog, bool)  { return Catalog{}, false }
func (noMemory) RememberTools(context.Context, Key, string, Catalog) {}
