package gateway

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// lateView hears changes only once it is let: of a tool before it says so, of a prompt
// afterwards.
type lateView struct {
	*script
	hears chan struct{}
}

func (v lateView) Listen(ctx context.Context, _ surface.Agent, want surface.Subscription, on func(mcp.Message)) error {
	on(mcp.Message{Method: mcp.MethodNotifyTools})
	select {
	case <-v.hears:
		want.Ready()
		on(mcp.Message{Method: mcp.MethodNotifyPrompts})
	case <-ctx.Done():
	}
	<-ctx.Done()
	return ctx.Err()
}

// said is an outlet that remembers the methods.
type said struct {
	mu      sync.Mutex // guards methods
	methods []string
}

func (*said) CanStream() bool { return true }

func (s *said) Send(message []byte) bool {
	m, _ := mcp.Parse(message)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.methods = append(s.methods, m.Method)
	return true
}

func (s *said) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.methods)
}

// A subscription is acknowledged when changes are heard and not before, so that an
// agent misses nothing that happens after it; servers that do not answer delay it for a
// while only. Whatever comes earlier comes behind it.
func TestListenAcknowledgesWhenHeard(t *testing.T) {
	for _, hears := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			v := lateView{&script{}, make(chan struct{})}
			g := New(v, nil)
			defer g.Close()
			out := &said{}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			over := make(chan struct{})
			go func() {
				defer close(over)
				g.listen(ctx, &request{end: &endpoint{view: v}, out: out, Request: mcp.Request{Params: []byte(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true}}`)}})
			}()
			time.Sleep(ackPatience - time.Millisecond)
			synctest.Wait()
			if got := out.all(); len(got) > 0 {
				t.Fatalf("said before anything is heard: %v", got)
			}
			want := []string{mcp.MethodNotifyListenOK, mcp.MethodNotifyTools}
			if hears {
				close(v.hears)
				want = append(want, mcp.MethodNotifyPrompts)
			} else {
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
			if got := out.all(); !slices.Equal(got, want) {
				t.Errorf("hears: %v; said %v, want %v", hears, got, want)
			}
			leave()
			<-over
		})
	}
}
