package host

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/usher-mcp/usher/mcp"
)

// Line leads to one key. It caches the lookup, so that a caller that uses the same key
// for every call does not repeat it: with a thousand servers each lookup would miss the
// CPU cache. All methods may be used concurrently.
type Line struct {
	h    *Host
	key  Key
	unit atomic.Pointer[unit]
}

// Line returns the way to a key, be there such a server or not.
func (h *Host) Line(k Key) *Line { return &Line{h: h, key: k.normal()} }

// find returns the unit of the key. One that was replaced is not used any more.
func (l *Line) find() (*unit, error) {
	if u := l.unit.Load(); u != nil && !u.gone.Load() {
		return u, nil
	}
	u, err := l.h.unit(l.key)
	l.unit.Store(u)
	return u, err
}

// Forget lets go of what is remembered, for a server that may not come back.
func (l *Line) Forget() { l.unit.Store(nil) }

// Do is [Host.Do].
func (l *Line) Do(ctx context.Context, req Request) ([]byte, error) {
	l.h.count.requests.Add(1)
	for {
		u, err := l.find()
		if err != nil {
			return nil, err
		}
		result, err := u.request(ctx, req)
		if !errors.Is(err, errReplaced) {
			return result, err
		}
	}
}

// Tools is [Host.Tools].
func (l *Line) Tools(ctx context.Context) (Catalog, error) { return l.list(ctx, mcp.MethodToolsList) }

func (l *Line) list(ctx context.Context, method string) (Catalog, error) {
	for {
		u, err := l.find()
		if err != nil {
			return Catalog{}, err
		}
		read, err := u.refresh(ctx, method)
		if errors.Is(err, errReplaced) {
			continue
		}
		if err != nil && (hidesTools(err) || ctx.Err() != nil || !u.catalog.failed(method, err)) {
			return Catalog{}, err
		}
		c, _ := u.catalog.view()
		if c.items(method) == nil { // dropped for the lists of others
			if err != nil || read == nil {
				continue
			}
			c.take(method, read)
		}
		return c, nil
	}
}

// Cached is [Host.Cached].
func (l *Line) Cached() (Catalog, bool) {
	u, err := l.find()
	if err != nil {
		return Catalog{}, false
	}
	u.recall(l.h.life)
	return u.catalog.view()
}
