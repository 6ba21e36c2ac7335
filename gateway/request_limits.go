package gateway

import (
	"net/http"
	"sync"
	"sync/atomic"
)

// limits bounds what one principal may have in flight at once.
type limits struct {
	maxCalls, maxStreams int64

	mu  sync.RWMutex // guards all
	all map[string]*usage
}

type usage struct{ calls, CanStream atomic.Int64 }

func (l *limits) init(calls, streams int) {
	l.maxCalls, l.maxStreams, l.all = int64(calls), int64(streams), map[string]*usage{}
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
	if u = l.all[principal]; u == nil {
		u = &usage{}
		l.all[principal] = u
	}
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
	u := l.of(principal)
	if !take(&u.calls, l.maxCalls) {
		return nil
	}
	return u
}

// stream turns a counted request into a stream that may stay for long, until the
// returned function is called. Nil: there is no room.
func (l *limits) stream(principal string) (back func()) {
	u := l.of(principal)
	if !take(&u.CanStream, l.maxStreams) {
		return nil
	}
	u.calls.Add(-1)
	return func() {
		u.CanStream.Add(-1)
		u.calls.Add(1)
	}
}

// tooMany answers 429. Requests in flight go on.
func (g *Gateway) tooMany(w http.ResponseWriter, why string) {
	g.count.limited.Add(1)
	w.Header().Set("Retry-After", "1")
	http.Error(w, why, http.StatusTooManyRequests)
}
