package surface

import (
	"context"
	"sync"

	"github.com/usher-mcp/usher/policy"
)

// follows are the subscriptions that are open at servers for agents.
type follows struct {
	mu  sync.Mutex // guards all, and stop of each
	all map[*follow]bool
}

// follow is one subscription: for whom, and at which account.
type follow struct {
	of    *follows
	agent Agent
	key   policy.Key
	want  Subscription
	stop  context.CancelFunc // nil while it is not open
}

func (f *follows) add(a Agent, k policy.Key, want Subscription) *follow {
	one := &follow{of: f, agent: a, key: k, want: want}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[*follow]bool{}
	}
	f.all[one] = true
	return one
}

func (f *follows) remove(one *follow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, one)
}

// run subscribes until ctx ends, the server hangs up, or check finds that the agent
// may not listen any more.
func (one *follow) run(ctx context.Context, listen func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	one.of.mu.Lock()
	one.stop = stop
	one.of.mu.Unlock()
	return listen(ctx)
}

// check ends the subscriptions that the gate would not allow any more, after rules
// or profiles have changed.
func (s *Surface) checkFollows(ctx context.Context) {
	s.follows.mu.Lock()
	defer s.follows.mu.Unlock()
	for one := range s.follows.all {
		if one.stop != nil && s.gate.MayListen(ctx, one.agent.now().who, one.key, one.want) != nil {
			one.stop()
		}
	}
}
