package gateway

import (
	"bytes"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// inbox holds the notifications of a client until they are passed on: a server that
// does not read must not hold up the client, and the client must not fill our
// memory. One goroutine per session passes them on, while there are any.
type notificationQueue struct {
	mu      sync.Mutex // guards what follows
	waiting []notice
	running bool
	second  time.Time // when the current second began
	count   int       // of the current second
}

type notice struct {
	method string
	params []byte
}

// passedOn reports whether a notification of a client concerns servers. No revision
// has others.
func passedOn(method string) bool {
	return method == mcp.MethodNotifyRoots || method == mcp.MethodNotifyProgress
}

// notified takes a notification of the client. What exceeds a limit is dropped, which
// the protocol allows: nobody waits for an answer.
func (s *session) notified(m *mcp.Message) {
	if !passedOn(m.Method) || len(m.Params) > limit.NotificationBytes || !s.notifications.put(m) {
		return
	}
	if !s.g.spawn(s.passOn) {
		s.notifications.stop()
	}
}

// put queues a notification and reports whether a goroutine has to be started.
func (b *notificationQueue) put(m *mcp.Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Sub(b.second) >= time.Second {
		b.second, b.count = now, 0
	}
	if b.count >= limit.SessionNotificationsPerSecond || len(b.waiting) >= limit.SessionNotifications {
		return false
	}
	b.count++
	b.waiting = append(b.waiting, notice{m.Method, bytes.Clone(m.Params)}) // without the rest of the body
	start := !b.running
	b.running = true
	return start
}

// take returns the next notification; false ends the goroutine.
func (b *notificationQueue) take() (notice, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.running, b.waiting = false, nil
		return notice{}, false
	}
	n := b.waiting[0]
	b.waiting = b.waiting[1:]
	return n, true
}

func (b *notificationQueue) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running, b.waiting = false, nil
}

// passOn passes notifications on until there are none or the session ends.
func (s *session) passOn() {
	for n, ok := s.notifications.take(); ok; n, ok = s.notifications.take() {
		if err := s.end.view.Notify(s.ctx, s.as(), n.method, n.params); err != nil {
			s.g.opt.Log.Debug("a notification of a client was not passed on", "method", n.method, "error", err)
		}
	}
}
