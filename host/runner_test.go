package host

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
)

// Starts are bounded, package runners on their own, and one that hangs gives its
// slot up.
func TestStartConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starting, most, runners, mostRunners atomic.Int32
		s := &stage{next: func(_ context.Context, srv config.Server, _ int) (*double, error) {
			n, top := &starting, &most
			if srv.Command == "npx" {
				n, top = &runners, &mostRunners
			}
			top.Store(max(top.Load(), n.Add(1)))
			defer n.Add(-1)
			time.Sleep(2 * time.Second)
			return &double{}, nil
		}}
		h := s.open(t, &Options{MaxConnected: 500, RunnerConcurrency: 2})
		var wg sync.WaitGroup
		began := time.Now()
		for i := range 200 {
			name := fmt.Sprint("s", i)
			mustSpawn(t, h, lazyServer(name, func(s *config.Server) {
				if i%20 == 0 {
					s.Command = "npx"
				}
			}))
			wg.Go(func() {
				if _, err := h.Tools(t.Context(), Key{Server: name}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most.Load() != 8 || mostRunners.Load() != 2 {
			t.Errorf("%d direct and %d runners started at once, want 8 and 2", most.Load(), mostRunners.Load())
		}
		if took := time.Since(began); took != 48*time.Second {
			t.Errorf("190 starts of 2s, 8 at once, took %v", took)
		}
	})
}

func TestHungStartsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{next: func(ctx context.Context, srv config.Server, _ int) (*double, error) {
			if srv.Name != "a" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &double{}, nil
		}}
		h := s.open(t, &Options{MaxConnected: 50})
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 16 {
			name := fmt.Sprint("hung", i)
			mustSpawn(t, h, lazyServer(name))
			wg.Go(func() { _, _ = h.Tools(ctx, Key{Server: name}) })
		}
		synctest.Wait()
		began := time.Now()
		if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*directSlot {
			t.Errorf("sixteen hung starts held up another for %v", took)
		}
		stop()
		wg.Wait()
	})
}
