package budget

import (
	"context"
	"strconv"
	"strings"

	"github.com/usher-mcp/usher/vault"
)

// sweep removes the counters of earlier windows of a length, of all budgets together:
// the call that opens the first window of a time does, and no other in this process. The
// last ones are kept: another process's clock may be a little behind.
func (b *Budgets) sweep(ctx context.Context, span string, index int64) {
	b.mu.Lock()
	done := b.swept[span] >= index
	b.swept[span] = max(b.swept[span], index)
	b.mu.Unlock()
	if done {
		return
	}
	counts, err := b.store.Counts(ctx, vault.KindBudget, vault.Local)
	if err != nil {
		return // the next window tries again; a counter too many does no harm
	}
	var old []vault.Key
	for _, c := range counts {
		if at, ok := indexOf(c.Name, span); ok && at < index-1 {
			old = append(old, c.Key)
		}
	}
	_ = b.store.Clear(ctx, old...) // as above
}

// indexOf is which window of a length a counter belongs to.
func indexOf(name, span string) (int64, bool) {
	i := strings.LastIndex(name, between)
	if i < 0 || !strings.HasSuffix(name[:i], between+span) {
		return 0, false
	}
	index, err := strconv.ParseInt(name[i+len(between):], 10, 64)
	return index, err == nil
}
