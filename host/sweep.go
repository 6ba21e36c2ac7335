package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

// sweep forgets the units of a server that nobody has used for long, at most once a
// minute, and the longest unused ones when there are too many. The units of the
// local user without an account stay: there is one for each server.
func (h *Host) sweep(reg *registration) error {
	h.mu.Lock()
	full := len(reg.units) >= limit.UnitsPerServer
	if !full && time.Since(reg.swept) < limit.UnitSweep {
		h.mu.Unlock()
		return nil
	}
	reg.swept = time.Now()
	units := slices.Collect(maps.Values(reg.units))
	h.mu.Unlock()
	type idleUnit struct {
		key   Key
		since time.Time
	}
	var idle []idleUnit
	for _, u := range units {
		if since, ok := u.idleSince(); ok && (u.key.Principal != Local || u.key.Account != "") {
			idle = append(idle, idleUnit{u.key, since})
		}
	}
	slices.SortFunc(idle, func(a, b idleUnit) int { return cmp.Compare(a.since.UnixNano(), b.since.UnixNano()) })
	for i, u := range idle {
		if time.Since(u.since) < limit.UnitIdle && (!full || i >= limit.UnitsPerServer/4) {
			break
		}
		h.Release(u.key)
		if h.opt.OnForget != nil {
			h.opt.OnForget(u.key)
		}
	}
	if full && len(idle) == 0 {
		return &Error{Server: reg.srv.Name, Err: fmt.Errorf("%w: %d connections", ErrBusy, len(units))}
	}
	return nil
}

// idleSince is when a unit without a connection was last used; false when it has
// one, or a caller waits for one.
func (u *unit) idleSince() (time.Time, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.used, u.live == nil && u.waiters == 0
}
