package budget

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// Budgets charges calls: to everything together, and to each server.
type Budgets struct {
	store vault.Counters // nil: windows are counted in this process only
	log   *slog.Logger

	total   Meter
	session atomic.Int64 // calls in each session, 0 for no limit

	mu      sync.Mutex // guards limits, servers, swept
	limits  config.Budgets
	swept   map[string]int64 // the newest window for which that was done, by length
	servers map[string]*Meter
}

// New returns budgets without limits. Without a store, windows are counted in this process
// only.
func New(store vault.Counters, log *slog.Logger) *Budgets {
	b := &Budgets{store: store, log: log, servers: map[string]*Meter{}, swept: map[string]int64{}}
	b.total.of = b
	b.total.limit.Store(&config.Budget{})
	return b
}

// Configure replaces the limits; what has been used stays used.
func (b *Budgets) Configure(limits config.Budgets) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limits = limits
	b.total.setLimit(limits.Total)
	b.session.Store(limits.Session)
	for name, m := range b.servers {
		m.setLimit(limitOf(limits, name))
	}
}

// charge takes one call from the budgets that apply, or from none of them. m is the
// server's.
func (b *Budgets) charge(ctx context.Context, m *Meter) error {
	if b.store != nil && b.total.dry() && m.dry() {
		b.reserveBoth(ctx, m)
	}
	if err := b.total.take(ctx); err != nil {
		return err
	}
	if err := m.take(ctx); err != nil {
		b.total.refund()
		return err
	}
	return nil
}

// Meter returns the one of a server, which stays the same.
func (b *Budgets) Meter(server string) *Meter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.servers[server]; m != nil {
		return m
	}
	m := &Meter{of: b, server: server}
	m.setLimit(limitOf(b.limits, server))
	b.servers[server] = m
	return m
}

func limitOf(limits config.Budgets, server string) config.Budget {
	if own, ok := limits.Servers[server]; ok {
		return own
	}
	return limits.PerServer
}

// Close gives back what was reserved and not used.
func (b *Budgets) Close(ctx context.Context) {
	b.mu.Lock()
	meters := slices.AppendSeq([]*Meter{&b.total}, maps.Values(b.servers))
	b.mu.Unlock()
	for _, m := range meters {
		if w := m.window.Swap(nil); w != nil {
			w.giveBack(ctx, b)
		}
	}
}

// Status is how far a budget is used up; limits of 0 mean none. Its JSON form is
// frozen.
type Status struct {
	Server   string        `json:"server"` // empty: all servers together
	Run      int64         `json:"run"`    // calls in this run
	RunLimit int64         `json:"run_limit,omitempty"`
	Window   time.Duration `json:"window_ns,omitempty"`
	// WindowUsed counts the calls in the window, of all processes together.
	WindowUsed  int64     `json:"window_used"`
	WindowLimit int64     `json:"window_limit,omitempty"`
	Refill      time.Time `json:"refill,omitzero"` // end of the window; zero when there is none
}

// Status lists all budgets that have a limit or have been used, by name.
func (b *Budgets) Status() []Status {
	b.mu.Lock()
	names := slices.Sorted(maps.Keys(b.servers))
	meters := []*Meter{&b.total}
	for _, name := range names {
		meters = append(meters, b.servers[name])
	}
	b.mu.Unlock()
	var out []Status
	for _, m := range meters {
		limit := m.limit.Load()
		s := Status{Server: m.server, Run: m.run.Load(), RunLimit: limit.Run, WindowLimit: limit.Calls}
		if limit.Calls > 0 {
			s.Window = limit.Window
		}
		if w := m.window.Load(); w != nil && time.Now().Before(w.end) {
			s.Refill = w.end
			s.WindowUsed = max(0, w.counted.Load()-w.left.Load())
		}
		out = append(out, s)
	}
	return out
}

// Meter counts the calls of one budget.
type Meter struct {
	of     *Budgets
	server string
	limit  atomic.Pointer[config.Budget]
	run    atomic.Int64
	window atomic.Pointer[window]
}

func (m *Meter) setLimit(b config.Budget) {
	if b.Window <= 0 {
		b.Window = time.Hour
	}
	if old := m.limit.Swap(&b); old != nil && *old != b {
		// A reservation under another limit is dropped; it stays counted, which
		// errs on the side of fewer calls.
		m.window.Store(nil)
	}
}

func (m *Meter) take(ctx context.Context) error {
	limit := m.limit.Load()
	if n := m.run.Add(1); limit.Run > 0 && n > limit.Run {
		m.run.Add(-1)
		return &Error{Server: m.server, Limit: limit.Run}
	}
	if limit.Calls <= 0 {
		return nil
	}
	if err := m.takeFromWindow(ctx, limit); err != nil {
		m.run.Add(-1)
		return err
	}
	return nil
}

// dry says whether the next call has to ask the store.
func (m *Meter) dry() bool {
	if m.limit.Load().Calls <= 0 {
		return false
	}
	w := m.window.Load()
	return w == nil || w.left.Load() <= 0
}

func (m *Meter) refund() {
	m.run.Add(-1)
	if w := m.window.Load(); w != nil {
		w.left.Add(1)
	}
}

// current is the window of now, nil when the limit was just changed.
func (m *Meter) current(limit *config.Budget, now time.Time) *window {
	w := m.window.Load()
	if w != nil && now.Before(w.end) {
		return w
	}
	next := newWindow(m.server, *limit, now)
	if m.window.CompareAndSwap(w, next) {
		return next
	}
	return m.window.Load() // another caller turned the page
}

func (m *Meter) takeFromWindow(ctx context.Context, limit *config.Budget) error {
	now := time.Now()
	w := m.current(limit, now)
	if w == nil {
		return nil // the next call meets the new limit
	}
	for !w.take() {
		granted, err := w.reserve(ctx, m.of, now)
		if err != nil {
			return err
		}
		if !granted {
			return &Error{Server: m.server, Limit: limit.Calls, Window: limit.Window, Refill: w.end}
		}
	}
	return nil
}
