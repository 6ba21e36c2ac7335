package process

import (
	"bytes"
	"context"
	"iter"
	"sync"
	"time"
)

const (
	// maxLine is where a line without end is cut into pieces.
	maxLine = 8 << 10
	// lineCost is charged for every line besides its text, so that a flood of
	// empty lines is bounded too. It is about what a Line occupies.
	lineCost = 64
)

// Line is one line of standard error. The text is what the child wrote, without
// the line ending and otherwise unchanged: callers neutralise control characters before
// they print it to a terminal.
type Line struct {
	// Seq counts the lines of a ring from 1. A gap means lines were dropped.
	Seq  uint64
	Time time.Time
	Text string
	// Partial says that the line goes on: it was cut because it is very long,
	// or its end has not been written yet.
	Partial bool
}

// Ring keeps the newest lines written to it within a bound and forgets the
// oldest. Writing never blocks and never fails, so a child that floods standard
// error is never held up. It is safe for concurrent use.
type Ring struct {
	limit int

	mu      sync.Mutex // guards all below
	lines   []Line     // the live ones start at head
	head    int
	size    int // cost of the live lines
	pending []byte
	since   time.Time // when pending began
	seq     uint64
	dropped uint64
	wake    chan struct{} // closed when lines are added; nil while nobody waits
	closed  bool
}

// NewRing returns a ring that holds about limit bytes, at least one line.
// A limit of zero or less means DefaultStderrBytes.
func NewRing(limit int) *Ring {
	if limit <= 0 {
		limit = DefaultStderrBytes
	}
	return &Ring{limit: limit}
}

// Write splits p into lines. It always takes all of p.
func (r *Ring) Write(p []byte) (int, error) {
	n := len(p)
	if n == 0 {
		return 0, nil
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(p) > 0 {
		p = r.take(p, now)
	}
	r.wakeAll()
	return n, nil
}

// take consumes the next line or piece of a line and returns the rest.
func (r *Ring) take(p []byte, now time.Time) []byte {
	if len(r.pending) == 0 {
		r.since = now
	}
	room := r.maxLine() - len(r.pending)
	end := bytes.IndexByte(p[:min(len(p), room+1)], '\n')
	switch {
	case end >= 0:
		r.pending = append(r.pending, p[:end]...)
		r.add(bytes.TrimSuffix(r.pending, []byte("\r")), false)
		return p[end+1:]
	case len(p) > room:
		r.pending = append(r.pending, p[:room]...)
		r.add(r.pending, true)
		return p[room:]
	}
	r.pending = append(r.pending, p...)
	return nil
}

// maxLine keeps a single line within a very small ring.
func (r *Ring) maxLine() int { return max(1, min(maxLine, r.limit-lineCost)) }

func (r *Ring) add(text []byte, partial bool) {
	r.seq++
	r.lines = append(r.lines, Line{Seq: r.seq, Time: r.since, Text: string(text), Partial: partial})
	r.size += len(text) + lineCost
	r.pending = r.pending[:0]
	for r.size > r.limit && len(r.lines)-r.head > 1 {
		old := &r.lines[r.head]
		r.size -= len(old.Text) + lineCost
		r.dropped += uint64(len(old.Text)) + 1
		if old.Partial {
			r.dropped-- // a cut line had no line ending of its own
		}
		*old = Line{}
		r.head++
	}
	if r.head > 32 && r.head*2 > len(r.lines) {
		n := copy(r.lines, r.lines[r.head:])
		clear(r.lines[n:])
		r.lines, r.head = r.lines[:n], 0
	}
}

func (r *Ring) wakeAll() {
	if r.wake != nil {
		close(r.wake)
		r.wake = nil
	}
}

// Flush ends a line whose end was not written, as when its writer is gone.
func (r *Ring) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) > 0 {
		r.add(r.pending, false)
		r.wakeAll()
	}
}

// Close flushes the ring and lets every Follow end once it has seen all lines.
// Lines stay readable. A ring may be closed twice.
func (r *Ring) Close() {
	r.Flush()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.wakeAll()
}

// Lines returns the lines held, oldest first. A line still being written comes
// last and is marked Partial.
func (r *Ring) Lines() []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := append([]Line(nil), r.lines[r.head:]...)
	if len(r.pending) > 0 {
		lines = append(lines, Line{Seq: r.seq + 1, Time: r.since, Text: string(r.pending), Partial: true})
	}
	return lines
}

// Dropped returns how many bytes were forgotten to make room.
func (r *Ring) Dropped() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// Follow yields the finished lines held and then new ones as they come, until ctx
// ends or the ring is closed. A reader slower than the writer misses lines and
// sees it by the gap in Seq; it never holds up the writer.
func (r *Ring) Follow(ctx context.Context) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		var last uint64
		for {
			lines, wake := r.after(last)
			for _, line := range lines {
				if ctx.Err() != nil || !yield(line) {
					return
				}
				last = line.Seq
			}
			if len(lines) > 0 {
				continue
			}
			if wake == nil {
				return
			}
			select {
			case <-wake:
			case <-ctx.Done():
				return
			}
		}
	}
}

// after returns the lines newer than seq or, when there are none, what to wait
// for; neither means that there will be no more.
func (r *Ring) after(seq uint64) ([]Line, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if missing := r.seq - seq; missing > 0 {
		live := r.lines[r.head:]
		return append([]Line(nil), live[len(live)-int(min(missing, uint64(len(live)))):]...), nil
	}
	if r.closed {
		return nil, nil
	}
	if r.wake == nil {
		r.wake = make(chan struct{})
	}
	return nil, r.wake
}
