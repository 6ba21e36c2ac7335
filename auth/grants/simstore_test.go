package grants

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// simBug is a fault that is put in on purpose, to see that the simulation finds it.
type simBug int

const (
	noBug simBug = iota
	// bugNoLease gives the lease to everybody and keeps no notes of requests.
	bugNoLease
	// bugNoFence writes whatever the lease and the version say.
	bugNoFence
	// bugLateWrite says that a login is stored and stores it afterwards: persist
	// after use.
	bugLateWrite
	// bugStaleRead does not look again under the lease: every read gives what the
	// process read first.
	bugStaleRead
	// bugNoNote keeps no notes of requests that are about to be sent.
	bugNoNote
)

// simView is the store as one process sees it: every step waits for the scheduler,
// and the promises are checked as it is done.
type simView struct {
	*vault.Memory
	r     *simRun
	p     *simProc
	first map[vault.Key]vault.Record // for bugStaleRead
}

// simRecord is what the checks want to know of a grant.
type simRecord struct {
	Generation int64   `json:"generation"`
	Access     string  `json:"access_token"`
	Refresh    string  `json:"refresh_token"`
	Ended      *Ending `json:"ended"`
}

// do lets a step of the store wait and then happen.
func (v *simView) do(ctx context.Context, what string, work func() error) error {
	fate, err := v.r.park(ctx, v.p, "store: "+what, false)
	if err != nil {
		return err
	}
	if what == "get "+vault.KindStep {
		// So begins what follows a failure, and what precedes the next request.
		if v.p.again.Load() {
			v.r.violate("%s does not ask again for an answer that was lost", v.p)
		}
		v.p.losses = 0
		v.p.again.Store(false)
	}
	if what == "get "+vault.KindSending {
		v.p.again.Store(false) // so begins the proof, without which nothing is asked again
	}
	switch fate {
	case unavailable:
		return vault.ErrUnavailable
	case hang:
		<-ctx.Done()
		return ctx.Err()
	}
	if err := work(); err != nil {
		return err
	}
	if fate == unsaid {
		return vault.ErrUnavailable
	}
	return nil
}

func (v *simView) Get(ctx context.Context, key vault.Key) (rec vault.Record, err error) {
	err = v.do(ctx, "get "+key.Kind, func() error {
		if v.noNotes(key) {
			return vault.ErrNotFound
		}
		rec, err = v.Memory.Get(ctx, key)
		if v.r.bug == bugStaleRead && key.Kind == vault.KindGrant && err == nil {
			if old, ok := v.first[key]; ok {
				rec = old
			}
			v.first = map[vault.Key]vault.Record{key: rec}
		}
		return err
	})
	return rec, err
}

// noNotes reports whether the bug makes the store forget a note.
func (v *simView) noNotes(key vault.Key) bool {
	return key.Kind == vault.KindSending && (v.r.bug == bugNoLease || v.r.bug == bugNoNote)
}

func (v *simView) Versions(ctx context.Context, kind, principal string) (versions map[string]int64, err error) {
	err = v.do(ctx, "versions "+kind, func() error {
		versions, err = v.Memory.Versions(ctx, kind, principal)
		return err
	})
	return versions, err
}

func (v *simView) Put(ctx context.Context, key vault.Key, data []byte, ifVersion int64) (rec vault.Record, err error) {
	err = v.do(ctx, "put "+key.Kind, func() error {
		rec, err = v.Memory.Put(ctx, key, data, ifVersion)
		if err == nil {
			v.r.wrote(v.p, key, data)
		}
		return err
	})
	return rec, err
}

func (v *simView) PutFenced(ctx context.Context, key vault.Key, data []byte, ifVersion int64, l vault.Lease) (rec vault.Record, err error) {
	put := func() error {
		switch {
		case v.noNotes(key):
			rec, err = vault.Record{Key: key, Version: 1}, nil
		case v.r.bug == bugNoLease:
			rec, err = v.Memory.Put(ctx, key, data, ifVersion)
		case v.r.bug == bugNoFence && key.Kind == vault.KindGrant:
			var now vault.Record
			if now, err = v.Memory.Get(ctx, key); err == nil {
				rec, err = v.Memory.Put(ctx, key, data, now.Version)
			}
		default:
			rec, err = v.Memory.PutFenced(ctx, key, data, ifVersion, l)
		}
		if err == nil {
			v.r.wrote(v.p, key, data)
		}
		return err
	}
	if v.r.bug == bugLateWrite && key.Kind == vault.KindGrant {
		ctx = context.WithoutCancel(ctx)
		v.r.pending.Go(func() { _ = v.do(ctx, "put fenced, late", put) })
		return vault.Record{Key: key, Version: ifVersion + 1}, nil
	}
	err = v.do(ctx, "put fenced "+key.Kind, put)
	return rec, err
}

func (v *simView) Delete(ctx context.Context, key vault.Key, ifVersion int64) error {
	return v.do(ctx, "delete "+key.Kind, func() error { return v.Memory.Delete(ctx, key, ifVersion) })
}

func (v *simView) Take(ctx context.Context, key vault.Key) (rec vault.Record, err error) {
	err = v.do(ctx, "take "+key.Kind, func() error {
		rec, err = v.Memory.Take(ctx, key)
		if err == nil && key == attemptsKey(v.r.a) {
			v.r.quiet = time.Time{}
		}
		return err
	})
	return rec, err
}

func (v *simView) Ready(ctx context.Context, room int) error {
	return v.do(ctx, "ready", func() error { return v.Memory.Ready(ctx, room) })
}

func (v *simView) Lease(ctx context.Context, name string, ttl time.Duration) (l vault.Lease, err error) {
	err = v.do(ctx, "lease", func() error {
		l, err = v.Memory.Lease(ctx, name, ttl)
		if v.r.bug == bugNoLease && err != nil {
			l, err = vault.Lease{Name: name, Expires: time.Now().Add(ttl)}, nil
			return err
		}
		if err == nil {
			v.r.leased(v.p, name)
		}
		return err
	})
	return l, err
}

func (v *simView) Renew(ctx context.Context, l vault.Lease, ttl time.Duration) (out vault.Lease, err error) {
	err = v.do(ctx, "renew the lease", func() error {
		if v.r.bug == bugNoLease {
			out, err = l, nil
			return err
		}
		out, err = v.Memory.Renew(ctx, l, ttl)
		return err
	})
	if err != nil {
		v.p.again.Store(false)
	}
	return out, err
}

func (v *simView) Release(ctx context.Context, l vault.Lease) error {
	return v.do(ctx, "release", func() error {
		err := v.Memory.Release(ctx, l)
		if err == nil {
			v.r.released(v.p, l.Name)
		}
		return err
	})
}

// wrote takes in that a record is durable, and checks what must hold of grants.
func (r *simRun) wrote(p *simProc, key vault.Key, data []byte) {
	if key == attemptsKey(r.a) {
		var t attempts
		if err := json.Unmarshal(data, &t); err != nil {
			r.violate("%s wrote nonsense: %v", p, err)
		}
		r.quiet = t.NotBefore
		return
	}
	if key.Kind != vault.KindGrant {
		return
	}
	var now simRecord
	if err := json.Unmarshal(data, &now); err != nil {
		r.violate("%s wrote nonsense: %v", p, err)
		return
	}
	if r.tracing {
		r.note(p, "has stored generation with "+now.Access+" and "+now.Refresh, proceed)
	}
	if r.last != nil && now.Generation <= r.last.Generation {
		r.violate("%s replaced generation %d by %d: newer tokens are gone", p, r.last.Generation, now.Generation)
	}
	if now.Ended != nil && r.server.acceptable(now.Refresh) {
		r.violate("%s ended a login that is good", p)
	}
	if a := r.server.access[now.Access]; a != nil {
		a.kept = true
	}
	if c := r.server.refresh[now.Refresh]; c != nil {
		c.kept = true
	}
	r.last = &now
}

// leased takes in that a process got the lease. What one that lost it by standing
// still finds out about the server may come too late for the next one.
func (r *simRun) leased(p *simProc, name string) {
	if old := r.holder[name]; old != nil && !old.dead {
		r.lapsed = true
		if r.figures.Outages > 0 {
			r.onlyInMemory(old)
		}
	}
	r.holder[name] = p
}

// released takes in that a process let go of the lease.
func (r *simRun) released(p *simProc, name string) {
	if r.holder[name] == p {
		delete(r.holder, name)
	}
	r.onlyInMemory(p)
}

// onlyInMemory excuses the login if the process has tokens that no store took.
func (r *simRun) onlyInMemory(p *simProc) {
	for _, c := range r.server.refresh {
		if c.by == p && !c.kept && !c.lost && c.family.current == c && r.sickStore() && len(r.procs) > 1 {
			// It is kept in memory, and others cannot know.
			c.family.excuse = "the store took nothing for too long"
		}
	}
}

// excused says why the login in use may have come to harm, "" if it may not.
func (r *simRun) excused() string { return r.server.refresh[r.last.Refresh].family.excuse }

// sickStore reports whether the store has not answered somebody in time, so that
// tokens may live in memory only.
func (r *simRun) sickStore() bool { return r.figures.Outages+r.figures.Freezes > 0 }

// isStore reports whether a step is one of the store.
func isStore(what string) bool { return strings.HasPrefix(what, "store") }
