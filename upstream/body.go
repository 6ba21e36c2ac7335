package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
)

// readBody reads a JSON answer of at most maxMessageBytes.
func (l *httpLink) readBody(ctx context.Context, resp *http.Response) ([]byte, error) {
	limit := l.c.limit
	body, err := readBounded(l.c.paced(ctx, resp.Body), resp.ContentLength, limit)
	if errors.Is(err, ErrTooLarge) {
		l.c.counts.tooLarge.Add(1)
		return nil, &TooLargeError{Server: l.c.server.Name, Limit: limit}
	}
	if err != nil {
		return nil, l.transport("receive", true, err)
	}
	return body, nil
}

// Sizes of the parts that a body of unknown length is read in. Growing one slice
// instead would leave several times the limit behind as garbage.
const (
	firstPart = 4 << 10
	lastPart  = 1 << 20
)

// largeParts are parts of lastPart bytes. Whoever sends very large answers would
// otherwise keep the garbage collector at work for everybody.
var largeParts = sync.Pool{New: func() any { return new([lastPart]byte) }}

// readBounded reads all of r, ErrTooLarge when that is more than limit. size is
// what the peer announced, negative when it did not.
func readBounded(r io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, ErrTooLarge
	}
	if size >= 0 && size <= lastPart {
		body := make([]byte, size)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	b := parts{list: [][]byte{make([]byte, 0, firstPart)}}
	defer b.release()
	for total := int64(0); ; {
		n, err := r.Read(b.room())
		b.used(n)
		if total += int64(n); total > limit {
			return nil, ErrTooLarge
		}
		switch {
		case errors.Is(err, io.EOF) && total < size:
			return nil, io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return b.join(), nil
		case err != nil:
			return nil, err
		}
	}
}

// parts are the pieces of a body that is being read, each larger than the one
// before it.
type parts struct {
	list [][]byte
	lent []*[lastPart]byte // those that go back to the pool
}

// room is where to read to next; it is never empty.
func (p *parts) room() []byte {
	last := p.list[len(p.list)-1]
	if len(last) == cap(last) {
		if next := 2 * cap(last); next < lastPart {
			last = make([]byte, 0, next)
		} else {
			large := largeParts.Get().(*[lastPart]byte)
			p.lent = append(p.lent, large)
			last = large[:0]
		}
		p.list = append(p.list, last)
	}
	return last[len(last):cap(last)]
}

func (p *parts) used(n int) {
	last := &p.list[len(p.list)-1]
	*last = (*last)[:len(*last)+n]
}

// join returns the body; it does not share memory with what goes back to the pool.
func (p *parts) join() []byte {
	if len(p.list) == 1 {
		return p.list[0]
	}
	return slices.Concat(p.list...)
}

func (p *parts) release() {
	for _, large := range p.lent {
		largeParts.Put(large)
	}
}
