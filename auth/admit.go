package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// admit makes room for one more pending login. Logins that have expired go. An
// account and a principal drop their own oldest logins: a user who begins again wants the
// new one, and a flood of logins keeps nobody from beginning another. When all
// principals together have too many, the new login is refused with [ErrTooMany]: one
// principal cannot get there alone, and drops nothing of another.
func (pl *pendingLogins) admit(ctx context.Context, p *pending) error {
	recs, err := pl.Store.List(ctx, vault.KindPending, vault.Local)
	if err != nil && !errors.Is(err, vault.ErrCorrupt) {
		return nil // writing it down says what is wrong with the store
	}
	var account, principal []*pending
	total := 0
	for _, rec := range recs {
		old, err := decodePending(rec)
		switch {
		case err == nil && !time.Now().Before(old.Expires):
			_ = pl.Store.Delete(ctx, rec.Key, rec.Version) // a later one will do as well
			continue
		case err == nil && old.account() == p.account():
			account = append(account, old)
		case err == nil && old.account().Normal().Principal == p.account().Normal().Principal:
			principal = append(principal, old)
		}
		total++
	}
	dropped := pl.dropOldest(ctx, account, limit.PendingPerAccount-1)
	dropped += pl.dropOldest(ctx, slices.Concat(principal, account[min(dropped, len(account)):]), limit.PendingPerPrincipal-1)
	if total-dropped >= limit.PendingTotal {
		return fmt.Errorf("log in to %s: %w: %d; try again in a few minutes", p.account(), ErrTooMany, total-dropped)
	}
	return nil
}

// dropOldest removes logins until no more than keep are left, sorting them by age.
func (pl *pendingLogins) dropOldest(ctx context.Context, logins []*pending, keep int) (dropped int) {
	slices.SortStableFunc(logins, func(a, b *pending) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.version, b.version))
	})
	for _, old := range logins[:max(0, len(logins)-keep)] {
		pl.drop(ctx, old)
		pl.waiting.finish(old.State.Reveal(), outcome{err: fmt.Errorf("login to %s: %w", old.account(), ErrReplaced)})
		dropped++
	}
	return dropped
}

// admit makes room for one more client registration: the oldest that no
// login needs go. A server may name another authorization server each time.
func (rg *registrar) admit(ctx context.Context) error {
	count, err := rg.Store.Versions(ctx, vault.KindClient, vault.Local)
	if err != nil || len(count) < limit.Registrations {
		return nil // keeping the new one says what is wrong with the store
	}
	all, used, err := rg.list(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b registration) int { return a.Created.Compare(b.Created) })
	left := len(all)
	for _, r := range all {
		if left < limit.Registrations {
			break
		}
		if !used[clientUse{r.Issuer, r.Client.ID}] && rg.Store.Delete(ctx, registrationKey(r.Issuer, r.Group), r.version) == nil {
			left--
		}
	}
	if left >= limit.Registrations {
		return fmt.Errorf("%w: %d client registrations are in use; log out of accounts that you no longer need", ErrTooMany, left)
	}
	return nil
}
