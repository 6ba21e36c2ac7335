package upstream

import "iter"

// pending are the exchanges of a connection that are in flight. The first has a place
// of its own: most of many servers never have two at once, and need no map.
type pending struct {
	first *exchange
	more  map[int64]*exchange
}

func (p *pending) add(x *exchange) {
	if p.first == nil {
		p.first = x
		return
	}
	if p.more == nil {
		p.more = map[int64]*exchange{}
	}
	p.more[x.id] = x
}

// find is nil when there is none with that id.
func (p *pending) find(id int64) *exchange {
	if p.first != nil && p.first.id == id {
		return p.first
	}
	return p.more[id]
}

// take is find, and the exchange is pending no more.
func (p *pending) take(id int64) *exchange {
	if x := p.first; x != nil && x.id == id {
		p.first = nil
		return x
	}
	x := p.more[id]
	delete(p.more, id)
	return x
}

func (p *pending) len() int {
	n := len(p.more)
	if p.first != nil {
		n++
	}
	return n
}

// all are in no order.
func (p *pending) all() iter.Seq[*exchange] {
	return func(yield func(*exchange) bool) {
		if p.first != nil && !yield(p.first) {
			return
		}
		for _, x := range p.more {
			if !yield(x) {
				return
			}
		}
	}
}
