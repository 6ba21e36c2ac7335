package bulk

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
)

// ErrClosed is returned once the driver is closed.
var ErrClosed = errors.New("the login driver is closed")

// goodbye is how long Close waits for an engine that does not return.
const goodbye = 5 * time.Second

// Options steer a Driver. The zero value works.
type Options struct {
	// Bulk bounds the work. Default: 8 servers at a time, 30 s each.
	Bulk config.Bulk
	// Backlog is how many unread events a subscription keeps. Default 256.
	Backlog int
}

// Driver logs accounts in, many at once. All methods may be called from any
// goroutine.
type Driver struct {
	engine Engine
	opt    Options
	bus    event.Bus[Event]

	life context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex // guards everything below; never held across a call of the engine
	closed bool
	rows   map[auth.Account]*row
	order  []auth.Account
	flows  map[string]*flow // by state
	moved  chan struct{}    // closed, and replaced, when a flow ends
}

// row is where one account stands.
type row struct {
	Event
	issuer string
	since  time.Time
	began  time.Time // when work on it began; zero while it is queued
	state  string    // of the login that is shown; "" when none waits
}

// New returns a driver over an engine, which stays the caller's.
func New(engine Engine, options *Options) *Driver {
	d := &Driver{
		engine: engine, rows: map[auth.Account]*row{}, flows: map[string]*flow{}, moved: make(chan struct{}),
	}
	if options != nil {
		d.opt = *options
	}
	if d.opt.Bulk.Concurrency <= 0 {
		d.opt.Bulk.Concurrency = config.DefaultBulkConcurrency
	}
	if d.opt.Bulk.PrepareTimeout <= 0 {
		d.opt.Bulk.PrepareTimeout = config.DefaultPrepareTimeout
	}
	if d.opt.Backlog <= 0 {
		d.opt.Backlog = event.DefaultBacklog
	}
	d.life, d.stop = context.WithCancel(context.Background())
	return d
}

// Close ends watching and all subscriptions. Logins that wait go on to wait in the
// store, where the next driver finds them.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.work.Wait()
	}()
	timer := time.NewTimer(goodbye)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		// Only an engine that ignores its context is left behind.
	}
	d.bus.Close()
	return nil
}

// spawn runs f in a goroutine that Close waits for; false after Close.
func (d *Driver) spawn(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.work.Go(f)
	return true
}

// Subscribe returns a subscription to all events from now on. One that falls behind
// by more than the backlog loses its oldest events, is told how many, and then asks
// [Driver.Rows]. The caller must Close it.
func (d *Driver) Subscribe() *event.Subscription[Event] { return d.bus.Subscribe(d.opt.Backlog) }

// Rows says where every account stands that the driver has heard of, in the order in
// which it did.
func (d *Driver) Rows() []Row {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Row, 0, len(d.order))
	for _, a := range d.order {
		r := d.rows[a]
		v := Row{Event: r.Event, Account: a, Issuer: r.issuer, Since: r.since}
		if f := d.flows[r.state]; f != nil {
			p := f.Pending
			v.Login = &p
		}
		out = append(out, v)
	}
	return out
}

// Groups is Rows by authorization server, in which order consents are best given.
func (d *Driver) Groups() []Group[Row] {
	return ByIssuer(d.Rows(), func(r Row) string { return r.Issuer })
}

// Pending counts the accounts that wait for a person, or whose answer is being
// exchanged right now.
func (d *Driver) Pending() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending()
}

// pending needs mu.
func (d *Driver) pending() (n int) {
	for _, r := range d.rows {
		if d.flows[r.state] != nil {
			n++
		}
	}
	return n
}

// Wait returns nil when no account waits any more, or an error when ctx ends or the
// driver is closed before.
func (d *Driver) Wait(ctx context.Context) error {
	for {
		d.mu.Lock()
		n, moved := d.pending(), d.moved
		d.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-d.life.Done():
			return ErrClosed
		}
	}
}

// rowOf finds or makes the row of an account. It needs mu.
func (d *Driver) rowOf(a auth.Account, url string) *row {
	r := d.rows[a]
	if r == nil {
		r = &row{Event: Event{Server: a.String(), Phase: PhaseQueued}, since: time.Now()}
		d.rows[a] = r
		d.order = append(d.order, a)
	}
	if url != "" {
		r.ServerURL = url
	}
	return r
}

// enter moves a row to a phase and tells so. It needs mu, so that events come in the
// order of what happened; publishing never waits.
func (d *Driver) enter(r *row, p Phase, detail string) {
	r.Phase, r.Detail, r.since = p, detail, time.Now()
	if r.began.IsZero() || p == PhaseDiscovering {
		r.began = r.since
	}
	r.Seconds = r.since.Sub(r.began).Round(time.Millisecond).Seconds()
	if p.Ended() {
		r.state = ""
	}
	d.bus.Publish(r.Event)
}

// Queue makes rows for targets whose turn has not come, so that all are seen.
func (d *Driver) Queue(targets []Target) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range targets {
		a := normal(t.Account)
		r := d.rowOf(a, shown(t.Server))
		if d.flows[r.state] == nil {
			r.Phase, r.Detail, r.since = PhaseQueued, "", time.Now()
		}
	}
}

// note moves the account of a target to a phase, if no login of it waits.
func (d *Driver) note(t Target, p Phase, detail string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rowOf(normal(t.Account), shown(t.Server))
	if d.flows[r.state] == nil {
		d.enter(r, p, detail)
	}
}

// belongs writes down which authorization server an account belongs to.
func (d *Driver) belongs(t Target, issuer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.rows[normal(t.Account)]; r != nil && issuer != "" {
		r.issuer = issuer
	}
}

// loginsOf returns the tracked logins of an account, newest first. It needs mu.
func (d *Driver) loginsOf(a auth.Account) []*flow {
	var out []*flow
	for _, f := range d.flows {
		if f.account == a {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(x, y *flow) int { return y.Created.Compare(x.Created) })
	return out
}
