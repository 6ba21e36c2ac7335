package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// Subscription says of which changes a caller wants to hear, see
// [upstream.Subscription].
type Subscription = upstream.Subscription

// heard takes in a notification that belongs to no request.
func (u *unit) heard(m mcp.Message) {
	switch m.Method {
	case mcp.MethodNotifyTools:
		u.catalog.changed(mcp.MethodToolsList)
	case mcp.MethodNotifyPrompts:
		u.catalog.changed(mcp.MethodPromptsList)
	case mcp.MethodNotifyRes:
		u.catalog.changed(mcp.MethodResourcesList)
		u.catalog.changed(mcp.MethodTemplatesList)
	}
	if u.h.opt.OnNotification == nil {
		return
	}
	if kind := listKind(m.Method); kind >= 0 && !u.changes[kind].Pass(func() { u.announce(kind, m) }) {
		return
	}
	u.h.opt.OnNotification(u.key, m)
}

// listKind numbers the announcements of changed lists; it is negative for everything
// else.
func listKind(method string) int {
	switch method {
	case mcp.MethodNotifyTools:
		return 0
	case mcp.MethodNotifyPrompts:
		return 1
	case mcp.MethodNotifyRes:
		return 2
	}
	return -1
}

// announce passes on that a list has changed, which was held back.
func (u *unit) announce(kind int, m mcp.Message) {
	u.h.spawn(func() {
		u.changes[kind].Passed()
		if !u.gone.Load() {
			u.h.opt.OnNotification(u.key, m)
		}
	})
}

// ackWait is how long the first list on a connection waits until the server has
// confirmed that it announces changes. A list that is read before has to be read again.
const ackWait = 250 * time.Millisecond

// awaitAck waits for that confirmation.
func (l *live) awaitAck(ctx context.Context, method string) {
	wait := time.Until(l.ackBy)
	if l.acked == nil || wait <= 0 || !l.hears.of(method) {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-l.acked:
	case <-t.C:
	case <-ctx.Done():
	}
}

// listen hears of changed lists for as long as the connection lives, where the
// stateless protocol wants to be asked for that.
func (u *unit) listen(l *live) {
	if !mcp.Stateless(l.conn.Version()) || l.hears == (lists{}) {
		return
	}
	want := upstream.Subscription{Tools: l.hears.tools, Prompts: l.hears.prompts, Resources: l.hears.resources}
	l.acked, l.ackBy = make(chan struct{}), time.Now().Add(ackWait)
	acked := sync.OnceFunc(func() { close(l.acked) })
	want.Ready = func() {
		u.catalog.distrust(l.hears)
		l.listening.Store(true)
		acked()
	}
	want.Lost = func() { l.listening.Store(false) } // lists are read each time until it is confirmed again
	l.listened.Go(func() {
		defer acked()
		defer l.listening.Store(false)
		err := l.conn.Listen(l.ctx, want, u.heard)
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, upstream.ErrClosed) {
			u.h.opt.Log.Debug("changes of lists are not heard any more", "server", u.key.Server, "error", err)
		}
	})
}

// Listen subscribes to changes of resources and lists of a server until ctx ends,
// see [upstream.Conn.Listen]. It holds the connection meanwhile, and returns an
// error when the connection breaks; the caller then subscribes again.
func (h *Host) Listen(ctx context.Context, k Key, want upstream.Subscription, on func(mcp.Message)) error {
	l, release, err := h.hold(ctx, k)
	if err != nil {
		return err
	}
	defer release()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(l.ctx, stop)()
	if err := l.conn.Listen(ctx, want, on); err != nil {
		return &Error{Op: "listen to", Server: k.Server, Err: err}
	}
	if mcp.Stateless(l.conn.Version()) {
		return nil
	}
	<-ctx.Done() // the older era only had to be told; changes come to OnNotification
	return &Error{Op: "listen to", Server: k.Server, Err: context.Cause(ctx)}
}

// Notify sends a notification to a server that is connected. One that is not has
// nothing to be told: it learns the state of things when it connects.
func (h *Host) Notify(ctx context.Context, k Key, method string, params []byte) error {
	u, err := h.unit(k)
	if err != nil {
		return err
	}
	l, _, err := u.hold()
	if l == nil {
		if errors.Is(err, errReplaced) {
			err = nil // nobody is connected
		}
		return err
	}
	defer u.release(l)
	if err := l.conn.Notify(ctx, method, params); err != nil {
		return &Error{Op: "notify", Server: k.Server, Err: err}
	}
	return nil
}
