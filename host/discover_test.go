package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

func TestDiscover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(ctx context.Context, srv config.Server, _ int) (*double, error) {
			switch srv.Name {
			case "s07": // hangs
				<-ctx.Done()
				return nil, ctx.Err()
			case "s03":
				return nil, &upstream.ProtocolError{Server: srv.Name, Msg: "no handshake"}
			}
			return &double{list: func(context.Context, string) (upstream.List, error) {
				return upstream.List{Items: named("one", "two"), Received: time.Now()}, nil
			}}, nil
		}}
		h := newHost(&Options{MaxConnected: 50}, s.dial)
		defer h.Close()
		for i := range 20 {
			mustSpawn(t, h, lazyServer(fmt.Sprintf("s%02d", i)))
		}
		mustSpawn(t, h, lazyServer("off", func(s *config.Server) { s.Disabled = true }))

		began := time.Now()
		tools, servers := 0, map[string]bool{}
		for row := range h.Discover(t.Context(), nil) {
			if row.Err != nil && row.Server != "s03" {
				t.Errorf("%s: %v", row.Server, row.Err)
			}
			if row.Err == nil {
				tools++
			}
			servers[row.Server] = true
			if len(servers) == 19 && tools == 36 {
				break
			}
		}
		if took := time.Since(began); took >= directSlot || servers["s07"] || servers["off"] {
			t.Errorf("nineteen answers took %v: %v", took, servers)
		}

		began = time.Now()
		rows := h.Gather(t.Context(), nil, time.Second)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Gather waited %v for one hung server", took)
		}
		if len(rows) != 38 || !slices.IsSortedFunc(rows, func(a, b Row) int { return strings.Compare(a.Server, b.Server) }) {
			t.Errorf("%d rows, want 36 tools and 2 errors, sorted", len(rows))
		}
		for _, r := range rows {
			if r.Server == "s07" && !errors.Is(r.Err, context.DeadlineExceeded) {
				t.Errorf("hung: %+v", r)
			}
		}
	})
}

func TestDiscoverAnnouncedChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, announce := range map[string]int32{"once": 1, "always": 1000} {
			var h *Host
			s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
				d := &double{caps: `{"tools":{"listChanged":true}}`}
				d.list = func(context.Context, string) (upstream.List, error) {
					if d.lists.Load() <= announce {
						u, err := h.unit(keyA)
						if err != nil {
							return upstream.List{}, err
						}
						u.heard(mcp.Message{Method: mcp.MethodNotifyTools})
					}
					return upstream.List{Items: named("one", "two"), Received: time.Now()}, nil
				}
				return d, nil
			}}
			h = s.open(t, nil)
			rows := 0
			for row := range h.Discover(t.Context(), nil) {
				rows++
				if row.Stale || row.Err != nil {
					t.Errorf("%s: %+v", name, row)
				}
			}
			if rows != 2 || s.last().lists.Load() > 2 {
				t.Errorf("%s: %d rows after %d lists", name, rows, s.last().lists.Load())
			}
		}
	})
}
