package host

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host/internal/deadline"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// Tools returns what the server offers, with its tools up to date: all pages, read
// over a live connection where the last known list may have changed. When that
// fails the last known tools are returned, marked as stale and with the problem.
func (h *Host) Tools(ctx context.Context, k Key) (Catalog, error) {
	return h.List(ctx, k, mcp.MethodToolsList)
}

// List is Tools for any list: tools/list, prompts/list, resources/list or
// resources/templates/list. Only that list is brought up to date; Stale and
// Problem of the Catalog speak of the tools.
func (h *Host) List(ctx context.Context, k Key, method string) (Catalog, error) {
	return h.Line(k).list(ctx, method)
}

// hidesTools reports whether an error means that nothing may be shown at all.
func hidesTools(err error) bool {
	return errors.Is(err, ErrHeldBack) || errors.Is(err, ErrDisabled) || errors.Is(err, ErrClosed)
}

// Cached returns the last known catalog without a connection, and false when
// nothing is known.
func (h *Host) Cached(k Key) (Catalog, bool) { return h.Line(k).Cached() }

// refresh brings a list up to date, and returns it if it had to be read. All who ask at
// once share one reading, which none of them can cancel alone.
func (u *unit) refresh(ctx context.Context, method string) (*upstream.List, error) {
	u.recall(ctx)
	u.mu.Lock()
	now := u.live
	u.mu.Unlock()
	if u.catalog.fresh(method, now) {
		return nil, nil
	}
	done := u.h.flights.DoChan(u.number+method, func() (any, error) {
		if !u.h.begin(&u.h.readers) {
			return nil, ErrClosed
		}
		defer u.h.readers.Done()
		return u.read(u.h.life, method)
	})
	select {
	case r := <-done:
		list, _ := r.Val.(*upstream.List)
		return list, r.Err
	case <-ctx.Done():
		return nil, &Error{Op: "list", Server: u.key.Server, Err: context.Cause(ctx)}
	}
}

// read fetches a list under supervision.
func (u *unit) read(ctx context.Context, method string) (*upstream.List, error) {
	u.h.count.requests.Add(1)
	var list upstream.List
	var seen int
	var from *live
	err := u.run(ctx, operation{
		name: "list", timeout: u.srv.Timeouts.List, repeatable: func() bool { return true },
		do: func(ctx context.Context, _ *deadline.Pausable, l *live) (err error) {
			l.awaitAck(ctx, method)
			seen, from = u.catalog.changeCount(method), l
			if !offers(l.conn.Info(), method) {
				list = upstream.List{Received: time.Now()} // it would only say that there is no such method
				return nil
			}
			list, err = l.conn.List(ctx, method)
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	if list.Items == nil {
		list.Items = [][]byte{} // known to be empty
	}
	u.keep(ctx, method, list, from, seen)
	return &list, nil
}

// keep takes over a list that was read, see catalog.store.
func (u *unit) keep(ctx context.Context, method string, list upstream.List, from *live, seen int) {
	differs := u.catalog.store(method, list, from, seen)
	u.catalog.limit()
	// In an era that was chosen for it, it does not describe the server.
	if u.base.Version == "" && u.catalog.toKeep() {
		if c, _ := u.catalog.view(); c.items(method) != nil { // else it is dropped already
			u.h.opt.Memory.RememberTools(ctx, u.key, u.digest, c)
		}
	}
	if differs && u.h.opt.Events != nil {
		u.h.opt.Events.Publish(event.ToolsChanged{Header: u.header(), List: listName(method), Count: len(list.Items)})
	}
}

// offers reports whether a list may be asked for. Tools always may: they are what
// servers are for, and some do not declare them.
func offers(info upstream.ServerInfo, method string) bool {
	if method == mcp.MethodToolsList || info.Capabilities == nil {
		return true
	}
	_, ok := jsonx.Get(info.Capabilities, listName(method))
	return ok
}

// listName is the capability that a list belongs to, which is also its name in
// events.
func listName(method string) string {
	name, _, _ := strings.Cut(method, "/")
	return name
}
