package grants

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// lookLimit bounds one look at what the store has.
const lookLimit = 10 * time.Second

// grantVersions is which versions of grants the store had for all accounts of a
// principal. A grant that was read is good for as long as its version is the same: with a
// thousand servers there is one look a second, not a thousand reads.
type grantVersions struct {
	at       time.Time // when the look began
	versions map[string]int64
}

// versionCache holds the last look of each principal.
type versionCache struct {
	mu sync.Mutex // guards by
	by map[string]grantVersions
}

func (b *versionCache) get(principal string) grantVersions {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[principal]
}

func (b *versionCache) put(principal string, s grantVersions) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil || len(b.by) > 10_000 {
		b.by = map[string]grantVersions{}
	}
	b.by[principal] = s
}

// versions returns a look that is younger than grantLife. All who want one at a time share
// it, and it goes on when a caller leaves.
func (gs *Store) versions(ctx context.Context, principal string) (grantVersions, error) {
	if s := gs.looks.get(principal); time.Since(s.at) < grantLife {
		return s, nil
	}
	ch := gs.env.flights.DoChan("versions/"+principal, func() (any, error) {
		if !gs.env.enter() {
			return grantVersions{}, ErrClosed
		}
		defer gs.env.work.Done()
		ctx, cancel := context.WithTimeoutCause(gs.env.Life, lookLimit, vault.ErrUnavailable)
		defer cancel()
		s := grantVersions{at: time.Now()}
		var err error
		if s.versions, err = gs.env.Store.Versions(ctx, vault.KindGrant, principal); err == nil {
			gs.looks.put(principal, s)
		}
		return s, err
	})
	select {
	case got := <-ch:
		return got.Val.(grantVersions), got.Err
	case <-ctx.Done():
		return grantVersions{}, ctx.Err()
	}
}

// confirm returns what was last read if the store still has the same, else what it has
// now.
func (gs *Store) confirm(ctx context.Context, a Account, cached cachedGrant) (*Grant, error) {
	s, err := gs.versions(ctx, a.principal())
	if err != nil {
		return nil, fmt.Errorf("read the login of %s: %w", a, err)
	}
	if cached.version() != s.versions[a.String()] {
		return gs.reload(ctx, a)
	}
	return gs.cache.confirm(a, cached.g, s.at), nil
}
