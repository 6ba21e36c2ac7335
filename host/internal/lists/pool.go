// Package lists keeps the lists of tools, prompts and resources of one server: connections
// that list the same share one list, and lists that differ are limited together. Use
// [Pool.Share] for every list that is read, then [Pool.Overdue]; [Pool.Forget] gives up
// what a connection holds. It does no I/O and may be used concurrently.
package lists

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"github.com/usher-mcp/usher/internal/limit"
)

// Pool holds the lists that are kept of a server. A server has a connection per account
// and per session of an agent, which mostly list the same: those share one list, and
// who looks at them knows it again without reading it. Lists that differ are limited
// for all connections together.
type Pool[C comparable] struct {
	Max   int64          // limit.CatalogBytes, less in tests
	owner func(C) string // who a catalog belongs to

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

// New returns an empty pool. owner names the principal of a catalog; it must not block.
func New[C comparable](owner func(C) string) *Pool[C] {
	return &Pool[C]{
		Max: limit.CatalogBytes, owner: owner, last: map[string][][]byte{}, held: map[*[]byte]*heldList{}, users: map[C]*poolUser{},
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
// within the limit: first those of the owner that takes up the most room, the largest
// before the older ones, but never c. So an owner with many or large lists does not cost
// the others theirs. They count as dropped already.
func (p *Pool[C]) Overdue(c C) []C {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes <= p.Max {
		return nil
	}
	var out []C
	for _, u := range p.bySize() {
		if p.bytes <= p.Max {
			break
		}
		if u.catalog != c {
			p.forgetLocked(u.catalog)
			out = append(out, u.catalog)
		}
	}
	return out
}

// sized is a user with its part of the bytes that are held.
type sized[C comparable] struct {
	catalog     C
	owner, part int64
	turn        uint64
}

// bySize returns the users in the order in which their lists are dropped. A list that
// several have counts for each of them with its part. It needs mu.
func (p *Pool[C]) bySize() []sized[C] {
	owners := map[string]int64{}
	all := make([]sized[C], 0, len(p.users))
	for c, u := range p.users {
		s := sized[C]{catalog: c, turn: u.turn}
		for _, id := range u.lists {
			l := p.held[id]
			s.part += l.bytes / int64(l.refs)
		}
		owners[p.owner(c)] += s.part
		all = append(all, s)
	}
	for i := range all {
		all[i].owner = owners[p.owner(all[i].catalog)]
	}
	slices.SortFunc(all, func(a, b sized[C]) int {
		return cmp.Or(cmp.Compare(b.owner, a.owner), cmp.Compare(b.part, a.part), cmp.Compare(a.turn, b.turn))
	})
	return all
}

// Bytes is the size of all lists that are held.
func (p *Pool[C]) Bytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}
