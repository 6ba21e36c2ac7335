package surface

import (
	"slices"
	"sync"

	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// flights are the requests in flight at servers of the older era. What such a server
// says beside its answers names no request, and belongs to the one in flight where
// there is one alone.
type flights struct {
	mu  sync.Mutex // guards all
	all map[policy.Key][]*flight
}

type flight struct{ on func(mcp.Message) }

// enter notes a request whose agent hears what belongs to it, until leave is called.
func (f *flights) enter(k policy.Key, on func(mcp.Message)) (leave func()) {
	one := &flight{on}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[policy.Key][]*flight{}
	}
	f.all[k] = append(f.all[k], one)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		rest := slices.DeleteFunc(f.all[k], func(o *flight) bool { return o == one })
		if f.all[k] = rest; len(rest) == 0 {
			delete(f.all, k)
		}
	}
}

// only returns the hook of the request that is alone on a connection, nil when there
// is none or more than one.
func (f *flights) only(k policy.Key) func(mcp.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if list := f.all[k]; len(list) == 1 {
		return list[0].on
	}
	return nil
}

// accompany has a request of an agent hear what an older server says meanwhile. A
// modern agent hears log messages only where it asked for them.
func (s *Surface) accompany(a Agent, rt routed, r *mcp.Request) (leave func()) {
	if r.OnNotification == nil || mcp.Stateless(rt.version) {
		return func() {}
	}
	if mcp.Stateless(a.Version) && levelOf(r.Params) == nil {
		on := r.OnNotification
		r.OnNotification = func(m mcp.Message) {
			if m.Method != mcp.MethodNotifyMessage {
				on(m)
			}
		}
	}
	return s.flights.enter(rt.key, r.OnNotification)
}
