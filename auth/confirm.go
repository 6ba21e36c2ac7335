package auth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// lookLimit bounds one look at what the store has.
const lookLimit = 10 * time.Second

// stock is which versions of grants the store had, for all accounts of a principal at
// a time. A grant that was read is good for as long as its version is the same: with a
// thousand servers there is one look a second, not a thousand reads.
type stock struct {
	at       time.Time // when the look began
	versions map[string]int64
}

// stockBook holds the last look of each principal.
type stockBook struct {
	mu sync.Mutex // guards by
	by map[string]stock
}

func (b *stockBook) get(principal string) stock {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[principal]
}

func (b *stockBook) put(principal string, s stock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil || len(b.by) > 10_000 {
		b.by = map[string]stock{}
	}
	b.by[principal] = s
}

// lookUp returns a look that is younger than grantLife. All who want one at a time share
// it, and it goes on when a caller leaves.
func (gs *grantStore) lookUp(ctx context.Context, principal string) (stock, error) {
	if s := gs.looks.get(principal); time.Since(s.at) < grantLife {
		return s, nil
	}
	ch := gs.flights.DoChan("stock/"+principal, func() (any, error) {
		if !gs.enter() {
			return stock{}, ErrClosed
		}
		defer gs.work.Done()
		ctx, cancel := context.WithTimeoutCause(gs.life, lookLimit, vault.ErrUnavailable)
		defer cancel()
		s := stock{at: time.Now()}
		var err error
		if s.versions, err = gs.store.Versions(ctx, vault.KindGrant, principal); err == nil {
			gs.looks.put(principal, s)
		}
		return s, err
	})
	select {
	case got := <-ch:
		return got.Val.(stock), got.Err
	case <-ctx.Done():
		return stock{}, ctx.Err()
	}
}

// confirm returns what was last read if the store still has the same, else what it has
// now.
func (gs *grantStore) confirm(ctx context.Context, a Account, cached cachedGrant) (*grant, error) {
	s, err := gs.lookUp(ctx, a.principal())
	if err != nil {
		return nil, fmt.Errorf("read the login of %s: %w", a, err)
	}
	if cached.version() != s.versions[a.String()] {
		return gs.reload(ctx, a)
	}
	return gs.cache.confirm(a, cached.g, s.at), nil
}
