package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/config"
)

// fault is one failure of a server, which several callers may meet with.
type fault struct {
	struck atomic.Bool // the breaker knows
}

// live is a connection in use. It is closed when nobody uses it any more, by the
// end of its grace, or with the Host.
type live struct {
	fault
	calls     atomic.Int32 // requests in flight
	refs      int          // guarded by u.mu
	draining  bool         // guarded by u.mu
	worked    bool         // the server has answered on it; guarded by u.mu
	conn      conn
	u         *unit
	srv       *config.Server // resolved
	hears     lists          // of which the server announces changes
	listening atomic.Bool    // stateless protocol: the server has confirmed that it announces them
	acked     chan struct{}  // closed when that was confirmed or cannot be; nil: not asked for
	ackBy     time.Time      // how long a list waits for it
	ctx       context.Context
	stop      context.CancelFunc
	hasPlace  bool
	announced bool           // set before shut, when somebody counts on the place
	listened  sync.WaitGroup // the stream that announces changes
	slot      func()         // ends the start
	lease     func()
	once      sync.Once
	unwatch   func() bool // ends waiting for its end; nil before it is in use, guarded by u.mu
}

// shut ends the connection and returns when everything of it is gone.
func (l *live) shut() {
	l.once.Do(func() {
		l.stop()
		l.u.mu.Lock()
		if l.unwatch != nil {
			l.unwatch()
		}
		l.u.mu.Unlock()
		l.listened.Wait()
		if err := l.conn.Close(); err != nil {
			l.u.h.opt.Log.Warn("a server did not end cleanly", "server", l.u.key.Server, "error", err)
		}
		h := l.u.h
		s := l.conn.Stats()
		h.count.garbage.Add(s.Garbage)
		h.count.lost.Add(s.Lost)
		h.count.tooLarge.Add(s.TooLarge)
		if l.hasPlace {
			h.places.Free(l.announced)
		}
		if l.lease != nil {
			l.lease()
		}
		h.mu.Lock()
		delete(h.open, l)
		h.mu.Unlock()
	})
}

// shutSoon ends the connection in the background. When the Host is closing, that
// shuts all connections itself.
func (l *live) shutSoon() { l.u.h.spawn(l.shut) }

// drain lets what is in flight finish, for a while, and then ends the connection.
// l must be out of use already.
func (l *live) drain(grace time.Duration) {
	l.u.mu.Lock()
	l.draining = true
	idle := l.refs == 0
	l.u.mu.Unlock()
	if idle {
		l.shutSoon()
		return
	}
	t := time.AfterFunc(grace, l.shutSoon)
	context.AfterFunc(l.ctx, func() { t.Stop() })
}

// take detaches the connection from its unit; it needs mu.
func (u *unit) take() *live {
	l := u.live
	u.live = nil
	if u.idle != nil {
		u.idle.Stop()
		u.wakes = time.Time{}
	}
	return l
}

// hold returns the connection for one more user, nil when there is none.
func (u *unit) hold() (*live, uint64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.replaced {
		return nil, 0, errReplaced
	}
	l := u.live
	if l == nil {
		return nil, u.epoch, nil
	}
	l.refs++
	u.used = time.Now()
	return l, u.epoch, nil
}

// release gives a held connection back.
func (u *unit) release(l *live) {
	u.mu.Lock()
	l.refs--
	u.used = time.Now()
	last, draining, current := l.refs == 0, l.draining, u.live == l
	u.mu.Unlock()
	switch {
	case !last:
	case draining:
		l.shutSoon()
	case current && l.hasPlace && u.h.places.Wanted():
		u.evict(0)
	case current:
		u.rest(u.srv.KeepAlive)
	}
}

// rest ends a lazy connection that nobody has used for d. A timer that goes off before
// that is left alone: setting it again with every call would cost more than to look once
// in a while.
func (u *unit) rest(d time.Duration) {
	if !u.srv.IsLazy() {
		return
	}
	if d <= 0 {
		u.evict(0)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	at := time.Now().Add(d)
	if !u.wakes.IsZero() && !at.Before(u.wakes) {
		return
	}
	u.wakes = at
	if u.idle == nil {
		u.idle = time.AfterFunc(d, u.wake)
		return
	}
	u.idle.Reset(d)
}

// wake ends a connection that nobody has used for long enough, or looks again when that
// may be so. While it is in use, the caller that gives it back sees to that.
func (u *unit) wake() {
	u.mu.Lock()
	u.wakes = time.Time{}
	inUse := u.live == nil || u.live.refs > 0
	awaited := u.waiters > 0
	left := u.srv.KeepAlive - time.Since(u.used)
	u.mu.Unlock()
	switch {
	case inUse:
	case awaited:
		u.rest(max(left, time.Second))
	case left > 0:
		u.rest(left)
	default:
		u.evict(u.srv.KeepAlive)
	}
}

// evict closes the connection if nobody has used it for d, and reports whether.
func (u *unit) evict(d time.Duration) bool {
	u.mu.Lock()
	if !u.isIdle() || time.Since(u.used) < d {
		u.mu.Unlock()
		return false
	}
	l := u.take()
	u.budget.ForgetStart()
	l.draining = true
	if u.state == Connected {
		u.setState(Disconnected, "")
	}
	if l.hasPlace {
		l.announced = true
		u.h.places.Announce()
	}
	u.mu.Unlock()
	u.h.count.evictions.Add(1)
	l.shutSoon()
	return true
}

// isIdle reports whether the connection could go; it needs mu.
func (u *unit) isIdle() bool {
	return u.live != nil && u.live.refs == 0 && u.waiters == 0
}

// makeRoom ends the least recently used idle child, if there is one and somebody
// needs its place.
func (h *Host) makeRoom() {
	for h.places.Wanted() {
		var oldest *unit
		var when time.Time
		for _, u := range h.units() {
			u.mu.Lock()
			if u.isIdle() && u.live.hasPlace && (oldest == nil || u.used.Before(when)) {
				oldest, when = u, u.used
			}
			u.mu.Unlock()
		}
		if oldest == nil {
			return
		}
		oldest.evict(0)
	}
}
