package gateway

import (
	"sync"

	"github.com/usher-mcp/usher/mcp"
)

// outlet carries messages to an agent: what comes before the answer to a request,
// or what belongs to none.
type outlet interface {
	// send takes over one message and does not block. False: it cannot be
	// delivered.
	send(message []byte) bool
	// streams reports whether anything can be sent before the answer.
	streams() bool
}

// Bounds of what waits for an agent that does not read. What comes on top is lost:
// a slow agent must not hold up a server that others use.
const (
	maxQueued      = 1024
	maxQueuedBytes = 4 << 20
)

// backlog keeps messages until somebody carries them away.
type backlog struct {
	wake      chan struct{} // one place: there may be something
	held      *heldBytes    // nil where nothing is counted
	principal string

	mu     sync.Mutex // guards what follows
	frames [][]byte
	size   int
	closed bool
}

func newBacklog() *backlog { return &backlog{wake: make(chan struct{}, 1)} }

// newBacklog keeps messages for a client that may be away.
func (g *Gateway) newBacklog(principal string) *backlog {
	return &backlog{wake: make(chan struct{}, 1), held: &g.held, principal: principal}
}

// streams implements [outlet].
func (b *backlog) streams() bool { return true }

func (b *backlog) send(message []byte) bool {
	return b.put(message, false)
}

// put is send, where room is made for an answer: there are no more of them than
// requests, and those are bounded.
func (b *backlog) put(message []byte, answer bool) bool {
	b.mu.Lock()
	ok := !b.closed && (answer || len(b.frames) < maxQueued && b.size+len(message) <= maxQueuedBytes)
	if ok = ok && b.hold(len(message)); ok {
		b.frames = append(b.frames, message)
		b.size += len(message)
	}
	b.mu.Unlock()
	b.poke()
	return ok
}

// hold counts what waits.
func (b *backlog) hold(n int) bool { return b.held == nil || b.held.take(b.principal, n) }

func (b *backlog) letGo(n int) {
	if b.held != nil {
		b.held.give(b.principal, n)
	}
}

// discard refuses what comes from now on and drops what waits.
func (b *backlog) discard() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.letGo(b.size)
	b.closed, b.frames, b.size = true, nil, 0
}

func (b *backlog) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take returns everything that waits, and whether more may come.
func (b *backlog) take() (frames [][]byte, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	frames = b.frames
	b.letGo(b.size)
	b.frames, b.size = nil, 0
	return frames, !b.closed
}

// back puts messages that could not be carried away in front of the others.
func (b *backlog) back(frames [][]byte) {
	b.mu.Lock()
	size := 0
	for _, f := range frames {
		size += len(f)
	}
	if !b.closed && b.hold(size) {
		b.frames = append(frames, b.frames...)
		b.size += size
	}
	b.mu.Unlock()
	b.poke()
}

// close refuses what comes from now on; what waits is still there.
func (b *backlog) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.poke()
}

// raw is a notification as bytes, also where a view made it from parts.
func raw(m mcp.Message) []byte {
	if m.Raw != nil {
		return m.Raw
	}
	return mcp.AppendNotification(nil, m.Method, m.Params)
}
