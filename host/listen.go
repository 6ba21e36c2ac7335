package host

import (
	"context"
	"errors"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/upstream"
)

// Subscription says of which changes a caller wants to hear, see
// [upstream.Subscription].
type Subscription = upstream.Subscription

// heard takes in a notification that belongs to no request.
func (u *unit) heard(m wire.Message) {
	switch m.Method {
	case wire.MethodNotifyTools:
		u.catalog.changed(wire.MethodToolsList)
	case wire.MethodNotifyPrompts:
		u.catalog.changed(wire.MethodPromptsList)
	case wire.MethodNotifyRes:
		u.catalog.changed(wire.MethodResourcesList)
		u.catalog.changed(wire.MethodTemplatesList)
	}
	if u.h.opt.OnNotification != nil {
		u.h.opt.OnNotification(u.key, m)
	}
}

// listen hears of changed lists for as long as the connection lives, where the
// modern era wants to be asked for that.
func (u *unit) listen(l *live) {
	if !wire.Modern(l.conn.Version()) || l.hears == (lists{}) {
		return
	}
	want := upstream.Subscription{Tools: l.hears.tools, Prompts: l.hears.prompts, Resources: l.hears.resources}
	l.listening.Store(true)
	l.listened.Go(func() {
		defer l.listening.Store(false)
		err := l.conn.Listen(l.ctx, want, u.heard)
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, upstream.ErrClosed) {
			u.h.opt.Log.Debug("changes of lists are not heard any more", "server", u.key.Server, "error", err)
		}
	})
}

// Listen subscribes to changes of resources and lists of a server until ctx ends,
// see [upstream.Conn.Listen]. The connection is held meanwhile. It ends with an
// error when the connection does; what to subscribe to anew is the caller's to
// know.
func (h *Host) Listen(ctx context.Context, k Key, want upstream.Subscription, on func(wire.Message)) error {
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
	if wire.Modern(l.conn.Version()) {
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
