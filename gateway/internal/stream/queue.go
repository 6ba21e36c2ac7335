package stream

import (
	"sync"

	"github.com/usher-mcp/usher/mcp"
)

// Sender carries messages to an agent: what comes before the answer to a request,
// or what belongs to none.
type Sender interface {
	// Send takes over one message and does not block. False: it cannot be
	// delivered.
	Send(message []byte) bool
	// CanStream reports whether anything can be sent before the answer.
	CanStream() bool
}

// Bounds of what waits for an agent that does not read. What comes on top is lost:
// a slow agent must not hold up a server that others use.
const (
	maxQueued      = 1024
	MaxQueuedBytes = 4 << 20
)

// Queue keeps messages until somebody carries them away.
type Queue struct {
	Wake      chan struct{} // one place: there may be something
	held      *ByteQuota    // nil where nothing is counted
	principal string

	mu     sync.Mutex // guards what follows
	frames [][]byte
	size   int
	closed bool
}

// NewQueue returns an empty queue. held counts its bytes for principal; nil: nothing is
// counted.
func NewQueue(held *ByteQuota, principal string) *Queue {
	return &Queue{Wake: make(chan struct{}, 1), held: held, principal: principal}
}

// CanStream implements [outlet].
func (b *Queue) CanStream() bool { return true }

// Send implements [Sender].
func (b *Queue) Send(message []byte) bool {
	return b.Put(message, false)
}

// Put is send, where room is made for an answer: there are no more of them than
// requests, and those are bounded.
func (b *Queue) Put(message []byte, answer bool) bool {
	b.mu.Lock()
	ok := !b.closed && (answer || len(b.frames) < maxQueued && b.size+len(message) <= MaxQueuedBytes)
	if ok = ok && b.reserve(len(message)); ok {
		b.frames = append(b.frames, message)
		b.size += len(message)
	}
	b.mu.Unlock()
	b.poke()
	return ok
}

// reserve counts what waits.
func (b *Queue) reserve(n int) bool { return b.held == nil || b.held.Take(b.principal, n) }

func (b *Queue) release(n int) {
	if b.held != nil {
		b.held.Give(b.principal, n)
	}
}

// Discard refuses what comes from now on and drops what waits.
func (b *Queue) Discard() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release(b.size)
	b.closed, b.frames, b.size = true, nil, 0
}

func (b *Queue) poke() {
	select {
	case b.Wake <- struct{}{}:
	default:
	}
}

// Take returns everything that waits, and whether more may come.
func (b *Queue) Take() (frames [][]byte, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	frames = b.frames
	b.release(b.size)
	b.frames, b.size = nil, 0
	return frames, !b.closed
}

// PutBack puts messages that could not be carried away in front of the others.
func (b *Queue) PutBack(frames [][]byte) {
	b.mu.Lock()
	size := 0
	for _, f := range frames {
		size += len(f)
	}
	if !b.closed && b.reserve(size) {
		b.frames = append(frames, b.frames...)
		b.size += size
	}
	b.mu.Unlock()
	b.poke()
}

// Close refuses what comes from now on; what waits is still there.
func (b *Queue) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.poke()
}

// Raw is a notification as bytes, also where a view made it from parts.
func Raw(m mcp.Message) []byte {
	if m.Raw != nil {
		return m.Raw
	}
	return mcp.AppendNotification(nil, m.Method, m.Params)
}
