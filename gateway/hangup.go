package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// lookAfter is how long a request is under way before somebody looks whether its agent
// is still there.
const lookAfter = 50 * time.Millisecond

// agentConn is a connection of an agent that notices when the agent leaves in the
// middle of a request.
//
// net/http does so too: it starts a goroutine for every request that waits for a byte,
// and ends it when the answer is there. Most calls are over before anybody could have
// left, and two goroutines that wait for each other cost them a sixth of their time and
// get into the way of others. Where a request says that it wants this (see expect), that
// goroutine is told at once that there is nothing, which ends it, and the look is taken
// here, later. Everybody else has what net/http does.
type agentConn struct {
	net.Conn
	closed func()
	leave  context.CancelFunc // ends all requests of the connection

	mu      sync.Mutex // guards what follows
	quiet   bool       // the next read of one byte is net/http's, to be told that there is nothing
	told    bool       // it was
	timer   *time.Timer
	looking chan struct{} // closed when a look has ended; nil while there is none
	called  bool          // the look is called off
	early   []byte        // what was read by looking: the agent's next request
	room    [1]byte
}

type connKey struct{}

// withConn gives the requests of a connection a context that the connection can end.
func withConn(ctx context.Context, c net.Conn) context.Context {
	a, ok := c.(*agentConn)
	if !ok {
		return ctx
	}
	ctx, a.leave = context.WithCancel(ctx)
	return context.WithValue(ctx, connKey{}, a)
}

// agentOf is the connection that a request came on, nil where it is of another kind.
func agentOf(r *http.Request) *agentConn {
	a, _ := r.Context().Value(connKey{}).(*agentConn)
	return a
}

// Read implements [net.Conn].
func (a *agentConn) Read(p []byte) (int, error) {
	a.mu.Lock()
	if a.quiet && len(p) == 1 {
		// Should it be somebody else after all, they ask again, as every reader does.
		a.quiet, a.told = false, true
		a.mu.Unlock()
		return 0, nil
	}
	a.told = false
	n := copy(p, a.early)
	a.early = a.early[n:]
	a.mu.Unlock()
	if n > 0 {
		return n, nil
	}
	return a.Conn.Read(p)
}

// Close implements [net.Conn].
func (a *agentConn) Close() error {
	err := a.Conn.Close()
	if a.leave != nil {
		a.leave()
	}
	a.closed()
	return err
}

// expect says that the body of a request is about to be read, and that whoever reads it
// calls done in the end. Nil does nothing.
func (a *agentConn) expect() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quiet = true
	if a.timer == nil {
		a.timer = time.AfterFunc(lookAfter, a.look)
	} else {
		a.timer.Reset(lookAfter)
	}
}

// look waits for a byte, or for the end of the connection, which ends its requests.
func (a *agentConn) look() {
	a.mu.Lock()
	if !a.told || a.looking != nil {
		a.quiet = false // net/http has not come yet: it may look itself
		a.mu.Unlock()
		return
	}
	looking := make(chan struct{})
	a.looking = looking
	a.mu.Unlock()
	n, err := a.Conn.Read(a.room[:])
	a.mu.Lock()
	a.early = a.room[:n]
	called := a.called
	a.mu.Unlock()
	if err != nil && !called && !errors.Is(err, os.ErrDeadlineExceeded) {
		a.leave()
	}
	close(looking)
}

// done says that a request is answered. Nil does nothing.
func (a *agentConn) done() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.timer.Stop()
	a.quiet, a.told = false, false
	looking := a.looking
	a.called = looking != nil
	a.mu.Unlock()
	if looking == nil {
		return
	}
	_ = a.SetReadDeadline(time.Unix(1, 0)) // on a connection that is gone it has ended already
	<-looking
	_ = a.SetReadDeadline(time.Time{})
	a.mu.Lock()
	a.looking, a.called = nil, false
	a.mu.Unlock()
}
