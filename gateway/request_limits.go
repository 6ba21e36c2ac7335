package gateway

import (
	"maps"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/usher-mcp/usher/internal/limit"
)

// limits bounds what one principal may have in flight at once.
type limits struct {
	maxCalls, maxStreams int64

	mu    sync.RWMutex // guards what follows; a usage without requests only leaves under Lock
	all   map[string]*usage
	sweep int // how many there may be before those without requests are dropped
}

type usage struct{ calls, streams atomic.Int64 }

func (l *limits) init(calls, streams int) {
	l.maxCalls, l.maxStreams, l.all = int64(calls), int64(streams), map[string]*usage{}
	l.sweep = limit.IdlePrincipals
}

func (l *limits) of(principal string) *usage {
	l.mu.RLock()
	u := l.all[principal]
	l.mu.RUnlock()
	if u != nil {
		return u
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(principal)
}

// add needs mu. The work to drop idle principals grows with how many there are, so it
// waits until their number has doubled.
func (l *limits) add(principal string) *usage {
	u := l.all[principal]
	if u != nil {
		return u
	}
	if len(l.all) >= l.sweep {
		maps.DeleteFunc(l.all, func(_ string, u *usage) bool { return u.calls.Load() == 0 && u.streams.Load() == 0 })
		l.sweep = max(limit.IdlePrincipals, 2*len(l.all))
	}
	u = &usage{}
	l.all[principal] = u
	return u
}

// take counts one more and reports whether there is room.
func take(n *atomic.Int64, limit int64) bool {
	if n.Add(1) <= limit {
		return true
	}
	n.Add(-1)
	return false
}

// call counts a request; the caller takes it off again. Nil: there is no room.
func (l *limits) call(principal string) *usage {
	return l.count(principal, func(u *usage) *atomic.Int64 { return &u.calls }, l.maxCalls)
}

// openStream is call for a stream that is not a request.
func (l *limits) openStream(principal string) *usage {
	return l.count(principal, func(u *usage) *atomic.Int64 { return &u.streams }, l.maxStreams)
}

// count takes one more while the usage cannot be dropped.
func (l *limits) count(principal string, of func(*usage) *atomic.Int64, most int64) *usage {
	l.mu.RLock()
	u := l.all[principal]
	ok := u != nil && take(of(u), most)
	l.mu.RUnlock()
	if u == nil {
		l.mu.Lock()
		u = l.add(principal)
		ok = take(of(u), most)
		l.mu.Unlock()
	}
	if !ok {
		return nil
	}
	return u
}

// stream turns a request that was counted into a stream that may stay for long, until the
// returned function is called. Nil: there is no room.
func (l *limits) stream(principal string) (back func()) {
	u := l.of(principal)
	if !take(&u.streams, l.maxStreams) {
		return nil
	}
	u.calls.Add(-1)
	return func() {
		u.calls.Add(1) // first, since a usage without requests may be dropped
		u.streams.Add(-1)
	}
}

// tooMany answers 429. Requests in flight go on.
func (g *Gateway) tooMany(w http.ResponseWriter, why string) {
	g.count.limited.Add(1)
	w.Header().Set("Retry-After", "1")
	http.Error(w, why, http.StatusTooManyRequests)
}
