package suspend

import (
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

// Store holds the calls that wait for a retry, for a limited time and in limited number.
type Store struct {
	max, share int
	ttl        time.Duration

	mu           sync.Mutex // guards what follows
	calls        map[string]*Call
	perPrincipal map[string]int // by principal
	closed       bool
}

// Init sets how many calls are held, a tenth of them for one principal, and for how long.
func (p *Store) Init(limit int, ttl time.Duration) {
	p.max, p.share, p.ttl = limit, max(limit/10, 1), ttl
	p.calls, p.perPrincipal = map[string]*Call{}, map[string]int{}
}

func (p *Store) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// Room reports whether a principal may have one more.
func (p *Store) Room(principal string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasRoom(principal)
}

// hasRoom needs mu.
func (p *Store) hasRoom(principal string) bool {
	return !p.closed && len(p.calls) < p.max && p.perPrincipal[principal] < p.share
}

// Add holds a call, if there is room.
func (p *Store) Add(c *Call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.hasRoom(c.principal) {
		return false
	}
	p.calls[c.ID] = c
	p.perPrincipal[c.principal]++
	left := limit.CallLifetime - time.Since(c.started)
	c.expiry = time.AfterFunc(min(p.ttl, max(left, 0)), func() { p.expire(c) })
	return true
}

// Take returns the call with this id, once, to a retry that answers its current round for
// the same request. Nil: there is no such call.
func (p *Store) Take(id string, round int, subject string) *Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[id]
	if c == nil || c.Subject != subject {
		return nil
	}
	c.mu.Lock()
	current := c.round == round
	c.mu.Unlock()
	if !current {
		return nil
	}
	p.remove(c)
	return c
}

// remove needs mu.
func (p *Store) remove(c *Call) {
	delete(p.calls, c.ID)
	if p.perPrincipal[c.principal]--; p.perPrincipal[c.principal] == 0 {
		delete(p.perPrincipal, c.principal)
	}
	c.expiry.Stop()
}

func (p *Store) expire(c *Call) {
	if p.Drop(c) {
		c.Cancel(ErrExpired)
	}
}

// Drop removes a call and reports whether it was there.
func (p *Store) Drop(c *Call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[c.ID] != c {
		return false
	}
	p.remove(c)
	return true
}

// CloseAll cancels all calls and holds no more.
func (p *Store) CloseAll() {
	p.mu.Lock()
	p.closed = true
	var all []*Call
	for _, c := range p.calls {
		p.remove(c)
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		c.Cancel(ErrClientLeft)
	}
}
