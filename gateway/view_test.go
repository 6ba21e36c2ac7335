package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// emptyEndpoints has views that nobody may look at.
type emptyEndpoints struct{}

func (emptyEndpoints) Auto() (surface.View, surface.Explanation) {
	return nil, surface.Explanation{}
}
func (emptyEndpoints) Meta() surface.View   { return nil }
func (emptyEndpoints) Direct() surface.View { return nil }
func (emptyEndpoints) Server(context.Context, surface.Agent, string) (surface.View, error) {
	return nil, fmt.Errorf("%w: none", surface.ErrUnknownView)
}

func (emptyEndpoints) Profile(string) (surface.View, error) {
	return nil, fmt.Errorf("%w: none", surface.ErrUnknownView)
}

func (emptyEndpoints) BeginLogin(context.Context, surface.View, surface.Agent, string) (surface.Login, error) {
	return surface.Login{}, errors.New("no logins here")
}

func (emptyEndpoints) LoginPending(context.Context, surface.View, surface.Agent, string) bool {
	return false
}

func (emptyEndpoints) Explain(err error) surface.Problem { return surface.Problem{Text: err.Error()} }

// script is a view whose answers a test writes.
type script struct {
	emptyEndpoints
	do      func(ctx context.Context, a surface.Agent, r mcp.Request) ([]byte, error)
	problem surface.Problem
	logins  *logins // nil: there are none

	mu     sync.Mutex // guards what follows
	closed []string   // lanes
	heard  []string   // notifications of agents
	on     func(mcp.Message)
}

func (s *script) Auto() (surface.View, surface.Explanation) {
	return s, surface.Explanation{}
}

func (s *script) Server(context.Context, surface.Agent, string) (surface.View, error) { return s, nil }

func (s *script) BeginLogin(_ context.Context, _ surface.View, a surface.Agent, target string) (surface.Login, error) {
	if s.logins == nil {
		return surface.Login{}, errors.New("no logins here")
	}
	return s.logins.begin(a.Principal, target)
}

func (s *script) LoginPending(context.Context, surface.View, surface.Agent, string) bool {
	return s.logins != nil && !s.logins.over.Load()
}

func (s *script) Explain(error) surface.Problem { return s.problem }

func (s *script) Info(context.Context, surface.Agent) (surface.Info, error) {
	return surface.Info{Server: []byte(`{"name":"s","version":"1"}`), Capabilities: []byte(`{"tools":{}}`), Instructions: "be kind", TTL: time.Second, Public: true}, nil
}

func (s *script) Do(ctx context.Context, a surface.Agent, r mcp.Request) ([]byte, error) {
	if s.do == nil || r.Method == mcp.MethodToolsList && r.Params == nil {
		return []byte(`{"tools":[]}`), nil
	}
	return s.do(ctx, a, r)
}

func (s *script) Listen(ctx context.Context, _ surface.Agent, want surface.Subscription, on func(mcp.Message)) error {
	s.mu.Lock()
	s.on = on
	s.mu.Unlock()
	if want.Ready != nil {
		want.Ready()
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s *script) Notify(_ context.Context, _ surface.Agent, method string, _ []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, method)
	return nil
}

func (s *script) Close(a surface.Agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = append(s.closed, a.Lane)
}

func (s *script) lanesClosed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.closed)
}

var errScript = errors.New("scripted failure")
