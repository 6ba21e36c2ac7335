package gateway

import (
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

// parking holds the calls that wait for a retry, for a bounded time and in bounded
// number.
type parking struct {
	max, share int
	ttl        time.Duration

	mu     sync.Mutex // guards what follows
	calls  map[string]*call
	of     map[string]int // by principal
	closed bool
}

func (p *parking) init(limit int, ttl time.Duration) {
	p.max, p.share, p.ttl = limit, max(limit/10, 1), ttl
	p.calls, p.of = map[string]*call{}, map[string]int{}
}

func (p *parking) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// room reports whether a principal may have one more.
func (p *parking) room(principal string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasRoom(principal)
}

// hasRoom needs mu.
func (p *parking) hasRoom(principal string) bool {
	return !p.closed && len(p.calls) < p.max && p.of[principal] < p.share
}

func (p *parking) add(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.hasRoom(c.principal) {
		return false
	}
	p.calls[c.id] = c
	p.of[c.principal]++
	left := limit.CallLifetime - time.Since(c.begun)
	c.expiry = time.AfterFunc(min(p.ttl, max(left, 0)), func() { p.expire(c) })
	return true
}

// take returns the call that a state was given for, once. Nil: it is gone, or the
// state is an older one.
func (p *parking) take(st state) *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[st.Call]
	if c == nil || c.subject != st.Request {
		return nil
	}
	c.mu.Lock()
	current := c.round == st.Round
	c.mu.Unlock()
	if !current {
		return nil
	}
	p.remove(c)
	return c
}

// remove needs mu.
func (p *parking) remove(c *call) {
	delete(p.calls, c.id)
	if p.of[c.principal]--; p.of[c.principal] == 0 {
		delete(p.of, c.principal)
	}
	c.expiry.Stop()
}

func (p *parking) expire(c *call) {
	if p.drop(c) {
		c.cancel(errExpired)
	}
}

// drop removes a call and reports whether it was there.
func (p *parking) drop(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[c.id] != c {
		return false
	}
	p.remove(c)
	return true
}

func (p *parking) closeAll() {
	p.mu.Lock()
	p.closed = true
	var all []*call
	for _, c := range p.calls {
		p.remove(c)
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		c.cancel(errLeft)
	}
}
