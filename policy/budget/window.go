package budget

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// window is one span of time of a budget. Spans begin at multiples of their
// length since 1970, so that all processes agree on them. Calls are taken from a
// reservation, and the shared counter is asked only when that is used up: nothing
// is written per call.
type window struct {
	end     time.Time
	left    atomic.Int64 // reserved and not used
	limit   int64
	counted atomic.Int64 // the shared counter, as last heard
	prefix  string       // of the counters of this budget
	span    string       // how long it is, as counters have it in their names
	brief   time.Duration
	index   int64

	turn    chan struct{} // holds a token while nobody reserves; the rest is the holder's
	granted int64         // all that was reserved here
	debt    int64         // granted while the counter could not be reached
	retry   time.Time     // spent: ask again then, others may have given back
	chunk   int64         // reserved the last time
	asked   time.Time     // when that was
}

// The first reservation is one call: many processes make no other, and have nothing to
// give back then. Later ones are small, so that little is lost with a process that
// dies, unless the last one did not even hold for a short part of the window: then it
// is larger. So the store is asked as seldom for each of many servers with few
// calls as for one with many. After a pause they are small again.
const (
	firstChunk   = 64
	maxChunk     = 8192
	mostTimes    = 8  // the last reservation: no burst gets more than that
	briefPart    = 60 // of a window: what a process that dies may take with it
	leastBrief   = time.Second
	mostBrief    = time.Minute
	pause        = 8 // times brief
	storeTimeout = 2 * time.Second
)

func newWindow(server string, limit config.Budget, now time.Time) *window {
	index := now.UnixNano() / int64(limit.Window)
	scope := "total"
	if server != "" {
		scope = "server " + server
	}
	span := Short(limit.Window)
	w := &window{
		limit: limit.Calls, index: index, span: span,
		end:    time.Unix(0, (index+1)*int64(limit.Window)),
		prefix: scope + between + span + between,
		brief:  min(max(limit.Window/briefPart, leastBrief), mostBrief),
		turn:   make(chan struct{}, 1),
	}
	w.turn <- struct{}{}
	return w
}

// between stands between the parts of a counter's name: whose it is, how long a window
// is, and which one.
const between = " / "

func (w *window) key() vault.Key {
	return vault.LocalKey(vault.KindBudget, w.prefix+strconv.FormatInt(w.index, 10))
}

// take uses one reserved call.
func (w *window) take() bool {
	for {
		n := w.left.Load()
		if n <= 0 {
			return false
		}
		if w.left.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// reserve gets some more calls and reports whether there may be one to take. One
// caller asks the store, the others wait for it.
func (w *window) reserve(ctx context.Context, b *Budgets, now time.Time) (bool, error) {
	select {
	case <-w.turn:
		defer func() { w.turn <- struct{}{} }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if w.left.Load() > 0 {
		return true, nil
	}
	if now.Before(w.retry) {
		return false, nil
	}
	if b.store == nil {
		w.counted.Store(w.limit)
		return w.grant(w.limit-w.granted, now), nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	chunk := w.nextChunk(now)
	sum, err := b.store.Add(ctx, w.key(), chunk+w.debt)
	return w.grant(w.settle(ctx, b, chunk, sum, err), now), nil
}

// reserveBoth asks the store for both budgets of a call at once, which waits for the
// disk once. What came of it shows when they are taken from.
func (b *Budgets) reserveBoth(ctx context.Context, m *Meter) {
	now := time.Now()
	total, own := b.total.current(b.total.limit.Load(), now), m.current(m.limit.Load(), now)
	if total == nil || own == nil {
		return
	}
	for _, w := range []*window{total, own} {
		select {
		case <-w.turn:
			defer func() { w.turn <- struct{}{} }()
		case <-ctx.Done():
			return
		}
		if w.left.Load() > 0 || now.Before(w.retry) {
			return // somebody else has asked
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	all, each := total.nextChunk(now), own.nextChunk(now)
	sums, err := b.store.AddAll(ctx, vault.Count{Key: total.key(), Value: all + total.debt}, vault.Count{Key: own.key(), Value: each + own.debt})
	if err != nil {
		sums = make([]int64, 2)
	}
	total.grant(total.settle(ctx, b, all, sums[0], err), now)
	own.grant(own.settle(ctx, b, each, sums[1], err), now)
}

// grant takes in what a reservation brought, and reports whether that is anything.
func (w *window) grant(n int64, now time.Time) bool {
	if n <= 0 {
		w.retry = now.Add(time.Second)
		return false
	}
	w.granted += n
	w.left.Add(n)
	return true
}

// settle returns how many calls may be used, of chunk that were wanted: sum is what the
// shared counter has become by that and the debt, or err says why it is not known.
func (w *window) settle(ctx context.Context, b *Budgets, chunk, sum int64, err error) int64 {
	if err != nil {
		// Calls go on while the store is away; this process then keeps to the
		// limit on its own and tells the counter later.
		b.log.Warn("a budget cannot be shared with other processes for now", "budget", w.prefix, "error", err)
		chunk = min(chunk, w.limit-w.granted)
		w.debt += max(chunk, 0)
		return chunk
	}
	first := sum == chunk+w.debt // of all processes
	w.debt = 0
	over := min(max(sum-w.limit, 0), chunk)
	if over > 0 {
		// Take back what was too much, so that what others give back is seen.
		if less, err := b.store.Add(ctx, w.key(), -over); err == nil {
			sum = less
		}
	}
	w.counted.Store(sum)
	if first {
		b.sweep(ctx, w.span, w.index)
	}
	return chunk - over
}

// nextChunk is how much to reserve at once: less when little is left, so that
// several processes can use a budget up to its end.
func (w *window) nextChunk(now time.Time) int64 {
	switch held := now.Sub(w.asked); {
	case w.chunk == 0:
		w.chunk = 1
	case w.chunk == 1 || held >= pause*w.brief:
		w.chunk = firstChunk
	case held < w.brief:
		// What would have held for so long, at the rate of the last.
		w.chunk = min(min(max(int64(w.brief/max(held, 1)), 2), mostTimes)*w.chunk, maxChunk)
	}
	w.asked = now
	chunk := min(w.chunk, max(1, w.limit/16))
	return min(chunk, max(1, (w.limit-w.counted.Load())/4))
}

// giveBack returns what was reserved and not used, and pays debts.
func (w *window) giveBack(ctx context.Context, b *Budgets) {
	if b.store == nil || !time.Now().Before(w.end) {
		return
	}
	select {
	case <-w.turn:
		defer func() { w.turn <- struct{}{} }()
	case <-ctx.Done():
		return
	}
	left := w.left.Swap(0)
	if delta := w.debt - left; delta != 0 {
		if _, err := b.store.Add(ctx, w.key(), delta); err != nil {
			b.log.Warn("unused calls of a budget were not given back", "budget", w.prefix, "calls", left, "error", err)
		}
	}
}
