package http1

import (
	"errors"
	"os"
	"time"
)

// lookAfter is how long a request is in flight before somebody looks whether its agent
// is still there.
const lookAfter = 50 * time.Millisecond

// begin says that x is in flight. When its body is here, whole, a look may be taken.
func (c *conn) begin(x *exchange, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.x = x; c.gone {
		x.ctx.End(nil) // its agent has left, or it was closed just now
	}
	if whole {
		c.watch()
	}
}

// bodyRead says that the body is here by now.
func (c *conn) bodyRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch()
}

// watch has a look taken in a while; it needs mu.
func (c *conn) watch() {
	c.whole = true
	if c.timer == nil {
		c.timer = time.AfterFunc(lookAfter, c.look)
	} else {
		c.timer.Reset(lookAfter)
	}
}

// look waits for the agent to leave, or for its next request. Until it is called off the
// buffer is its own.
func (c *conn) look() {
	c.mu.Lock()
	if !c.whole || c.looking != nil {
		c.mu.Unlock()
		return
	}
	if !c.due.IsZero() {
		_ = c.expires(time.Time{}) // if it cannot, the read below says why
	}
	looking := make(chan struct{})
	c.looking = looking
	c.mu.Unlock()
	defer close(looking)
	c.makeRoom()
	n, err := c.Read(c.buf[c.to:])
	c.to += n
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !(c.called && errors.Is(err, os.ErrDeadlineExceeded)) {
		c.leaves()
	}
}

// leaves ends what is in flight; it needs mu.
func (c *conn) leaves() {
	c.gone = true
	if c.x != nil {
		c.x.ctx.End(nil)
	}
}

// end ends the look: the request is answered. An agent that has left may have said
// something more before; the reader of the next request finds out.
func (c *conn) end() {
	c.mu.Lock()
	c.x, c.whole = nil, false
	if c.timer != nil {
		c.timer.Stop()
	}
	looking := c.looking
	c.called = looking != nil
	if c.called {
		_ = c.expires(time.Unix(1, 0)) // on a connection that is gone it has ended already
	}
	c.mu.Unlock()
	if looking == nil {
		return
	}
	<-looking
	_ = c.expires(time.Time{}) // the next read says what is wrong
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looking, c.called = nil, false
}

// cut closes a connection in the middle of whatever it does.
func (c *conn) cut() {
	c.state.Store(closed)
	_ = c.Close() // for good
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaves()
}
