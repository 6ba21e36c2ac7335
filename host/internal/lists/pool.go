// Package lists keeps the lists of tools, prompts and resources of one server: connections
// that list the same share one list, and lists that differ are limited together. Use
// [Pool.Share] for every list that is read, then [Pool.Overdue]; [Pool.Forget] gives up
// what a connection holds. It does no I/O and may be used concurrently.
package lists

import (
	"bytes"
	"slices"
	"sync"

	"github.com/usher-mcp/usher/internal/limit"
)

// Pool holds the lists that are kept of a server. A server has a connection per account
// and per session of an agent, which mostly list the same: those share one list, and
// who looks at them knows it again without reading it. Lists that differ are limited
// for all connections together.
type Pool[C comparable] struct {
	Max int64 // limit.CatalogBytes, less in tests

	mu    sync.Mutex // guards what follows
	last  map[string][][]byte
	held  map[*[]byte]*heldList // by the first item
	users map[C]*poolUser       // those that hold lists
	bytes int64                 // of all held lists
	turn  uint64                // grows with each list that is stored
}

// heldList is a list and how many catalogs have it.
type heldList struct {
	refs  int
	bytes int64
}

// poolUser is what one catalog holds, by method.
type poolUser struct {
	lists map[string]*[]byte
	turn  uint64 // when it last stored a list
}

// New returns an empty pool.
func New[C comparable]() *Pool[C] {
	return &Pool[C]{
		Max: limit.CatalogBytes, last: map[string][][]byte{}, held: map[*[]byte]*heldList{}, users: map[C]*poolUser{},
	}
}

// Share returns the list that is kept where it is equal, else items, and counts it as
// held by c.
func (p *Pool[C]) Share(c C, method string, items [][]byte) [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.users[c]
	if u == nil {
		u = &poolUser{lists: map[string]*[]byte{}}
		p.users[c] = u
	}
	p.turn++
	u.turn = p.turn
	if len(items) == 0 {
		p.release(u, method)
		return items
	}
	if old := p.last[method]; slices.EqualFunc(old, items, bytes.Equal) {
		items = old
	}
	id := &items[0]
	l := p.held[id]
	if l == nil {
		l = &heldList{}
		for _, item := range items {
			l.bytes += int64(len(item))
		}
		p.held[id] = l
		p.bytes += l.bytes
	}
	l.refs++
	p.release(u, method)
	p.last[method] = items
	u.lists[method] = id
	return items
}

// release gives one list of a user up; it needs mu.
func (p *Pool[C]) release(u *poolUser, method string) {
	id := u.lists[method]
	if id == nil {
		return
	}
	delete(u.lists, method)
	l := p.held[id]
	if l.refs--; l.refs > 0 {
		return
	}
	delete(p.held, id)
	p.bytes -= l.bytes
	if last := p.last[method]; len(last) > 0 && &last[0] == id {
		delete(p.last, method)
	}
}

// Forget gives up everything that c holds.
func (p *Pool[C]) Forget(c C) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetLocked(c)
}

func (p *Pool[C]) forgetLocked(c C) {
	u := p.users[c]
	if u == nil {
		return
	}
	for method := range u.lists {
		p.release(u, method)
	}
	delete(p.users, c)
}

// Overdue returns the catalogs that have to drop their lists for the others to stay
// within the limit: those that stored one the longest ago, but never c. They count as
// dropped already.
func (p *Pool[C]) Overdue(c C) []C {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []C
	for p.bytes > p.Max && len(p.users) > 1 {
		oldest := c
		for other, u := range p.users {
			if other != c && (oldest == c || u.turn < p.users[oldest].turn) {
				oldest = other
			}
		}
		if oldest == c {
			break
		}
		p.forgetLocked(oldest)
		out = append(out, oldest)
	}
	return out
}

// Bytes is the size of all lists that are held.
func (p *Pool[C]) Bytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}
