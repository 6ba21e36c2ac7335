package bulk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/auth"
)

// grace is how long an engine may take to return after its time is up, so that its
// own words can be told.
const grace = time.Second

// listTimeout bounds the look at logins that wait already.
const listTimeout = 5 * time.Second

// TimeoutError says during which step the time of one server was up. It is
// context.DeadlineExceeded.
type TimeoutError struct {
	Step string
	Err  error // what the engine said, if anything
}

// The steps.
const (
	stepStored  = "looking at the stored login"
	stepTurn    = "waiting for another usher that begins the same login"
	stepResolve = "resolving authorization server"
	stepMint    = "minting authorization URL"
)

func (e *TimeoutError) Error() string {
	if e.Err == nil || e.Err == context.DeadlineExceeded {
		return "timed out " + e.Step
	}
	return fmt.Sprintf("timed out %s: %v", e.Step, e.Err)
}

// Is makes errors.Is(err, context.DeadlineExceeded) hold.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Unwrap returns what the engine said.
func (e *TimeoutError) Unwrap() error { return e.Err }

// round is one call of Prepare.
type round struct {
	mode    Mode
	via     Redirect
	waiting []auth.Pending // logins that waited when it began
}

// Prepare begins a login for every target that mode selects, several at once, and
// returns one outcome for each, in the order asked. Each outcome also goes to
// onOutcome, if that is not nil, as soon as it is ready; it is called from this
// goroutine, one at a time, and being slow holds up nobody.
//
// Every target has the time of [config.Bulk], from its turn on. Logins that were
// begun stay when ctx ends.
func (d *Driver) Prepare(ctx context.Context, targets []Target, mode Mode, via Redirect, onOutcome func(Outcome)) []Outcome {
	d.Queue(targets)
	rd := &round{mode: mode, via: via, waiting: d.listWaiting(ctx)}
	out := make([]Outcome, len(targets))
	ready := make(chan int, len(targets)) // room for all: workers never wait for onOutcome
	jobs := make(chan int, len(targets))
	seen := map[auth.Account]bool{}
	for i, t := range targets {
		a := normal(t.Account)
		if seen[a] {
			out[i] = Outcome{Status: StatusSkipped, Server: a.String(), ServerURL: shown(t.Server), Reason: ReasonTwice}
			ready <- i
			continue
		}
		seen[a] = true
		jobs <- i
	}
	close(jobs)
	var workers sync.WaitGroup
	for range min(d.opt.Bulk.Concurrency, len(jobs)) {
		workers.Go(func() {
			for i := range jobs {
				out[i] = d.prepare(ctx, targets[i], rd)
				ready <- i
			}
		})
	}
	for range targets {
		if i := <-ready; onOutcome != nil {
			onOutcome(out[i])
		}
	}
	workers.Wait()
	return out
}

// listWaiting looks which logins wait already. Without the answer none is joined.
func (d *Driver) listWaiting(ctx context.Context) []auth.Pending {
	ctx, cancel := context.WithTimeout(ctx, min(listTimeout, d.opt.Bulk.PrepareTimeout))
	defer cancel()
	got := make(chan []auth.Pending, 1)
	if !d.spawn(func() {
		list, _ := guard(func() ([]auth.Pending, error) { return d.engine.Waiting(ctx) })
		got <- list
	}) {
		return nil
	}
	select {
	case list := <-got:
		return list
	case <-ctx.Done():
		return nil
	}
}

// prepare is the whole work on one target, within its time.
func (d *Driver) prepare(ctx context.Context, t Target, rd *round) Outcome {
	if err := ctx.Err(); err != nil {
		return d.conclude(t, rd, begun{}, fmt.Errorf("interrupted before its turn came: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, d.opt.Bulk.PrepareTimeout)
	defer cancel()
	d.note(t, PhaseDiscovering, "")
	at := &progress{}
	at.step.Store(stepResolve)
	type result struct {
		b   begun
		err error
	}
	done := make(chan result, 1)
	var left atomic.Bool // set once, by the result or by the timeout, whichever is first
	if !d.spawn(func() {
		b, err := guard(func() (begun, error) { return d.begin(ctx, t, rd, at) })
		if !left.CompareAndSwap(false, true) {
			d.tooLate(b)
			return
		}
		done <- result{b, err}
	}) {
		return d.conclude(t, rd, begun{}, ErrClosed)
	}
	select {
	case r := <-done:
		return d.conclude(t, rd, r.b, at.explain(r.err))
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case r := <-done:
		return d.conclude(t, rd, r.b, at.explain(r.err))
	case <-timer.C:
	}
	if !left.CompareAndSwap(false, true) {
		r := <-done
		return d.conclude(t, rd, r.b, at.explain(r.err))
	}
	return d.conclude(t, rd, begun{}, at.explain(ctx.Err()))
}

// tooLate gives up a login whose account has been reported as failed.
func (d *Driver) tooLate(b begun) {
	if b.login.State != "" && !b.joined {
		d.giveUp([]*flow{{Pending: b.login}})
	}
}

// progress knows which step the work on a target is at.
type progress struct{ step atomic.Value }

// explain says where time was up or the work was interrupted; other errors stay as
// they are.
func (p *progress) explain(err error) error {
	step := p.step.Load().(string)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &TimeoutError{Step: step, Err: err}
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted while %s: %w", step, err)
	}
	return err
}

// begun is what the work on a target led to, if it did not fail.
type begun struct {
	login  auth.Pending
	joined bool
	skip   string // why it was skipped; "" when it was not
	issuer string
}

// begin selects by mode, joins a login that waits already, or begins one.
func (d *Driver) begin(ctx context.Context, t Target, rd *round, at *progress) (begun, error) {
	if t.Server.Problem != nil {
		return begun{}, t.Server.Problem
	}
	if reason := needless(t); reason != "" {
		return begun{skip: reason}, nil
	}
	if b, err := d.choose(ctx, t, rd.mode, at); err != nil || b.skip != "" {
		return b, err
	}
	if p, ok := d.joinable(ctx, t, rd.via, rd.waiting); ok {
		return begun{login: p, joined: true}, nil
	}
	var b begun
	at.step.Store(stepTurn)
	err := d.engine.Alone(ctx, t, func(ctx context.Context) (err error) {
		at.step.Store(stepResolve)
		b, err = d.beginAlone(ctx, t, rd, at)
		return err
	})
	return b, err
}

// beginAlone begins a login unless another process has done so since the round began.
func (d *Driver) beginAlone(ctx context.Context, t Target, rd *round, at *progress) (begun, error) {
	// Without the answer none is joined.
	if now, err := d.engine.Waiting(ctx); err == nil {
		if p, ok := d.joinable(ctx, t, rd.via, now); ok {
			return begun{login: p, joined: true}, nil
		}
	}
	p, err := d.engine.Begin(ctx, t, rd.via, func() { at.step.Store(stepMint) })
	if errors.Is(err, ErrNotNeeded) {
		return begun{skip: err.Error()}, nil
	}
	return begun{login: p}, err
}

// choose decides by what is stored whether a login is wanted.
func (d *Driver) choose(ctx context.Context, t Target, mode Mode, at *progress) (begun, error) {
	if mode == ModeAll {
		return begun{}, nil
	}
	if mode != ModeMissing && mode != ModeExpired {
		return begun{}, fmt.Errorf("unknown mode %q; known are missing, expired and all", mode)
	}
	at.step.Store(stepStored)
	s, err := d.engine.Standing(ctx, t)
	if err != nil {
		return begun{}, err
	}
	at.step.Store(stepResolve)
	b := begun{issuer: s.Issuer}
	switch {
	case mode == ModeMissing && s.Usable:
		b.skip = ReasonConnected
	case mode == ModeExpired && !s.Stored:
		b.skip = ReasonNoToken
	case mode == ModeExpired && s.Usable:
		b.skip = ReasonStillValid
	}
	return b, nil
}

// joinable finds a login of the account that waits already and can be used.
func (d *Driver) joinable(ctx context.Context, t Target, via Redirect, waiting []auth.Pending) (auth.Pending, bool) {
	if via.Fresh {
		return auth.Pending{}, false
	}
	var best auth.Pending
	for _, p := range of(t.Account, waiting) {
		if p.ServerURL == t.Server.URL && p.Created.After(best.Created) && d.engine.Joinable(ctx, p, via) {
			best = p
		}
	}
	return best, best.State != ""
}

// of lists the logins of an account, begun here or elsewhere.
func of(a auth.Account, waiting []auth.Pending) []auth.Pending {
	var out []auth.Pending
	for _, p := range waiting {
		if normal(p.Account) == normal(a) {
			out = append(out, p)
		}
	}
	return out
}

// conclude turns the result into an outcome, and tells.
func (d *Driver) conclude(t Target, rd *round, b begun, err error) Outcome {
	o := Outcome{Server: t.Account.String(), ServerURL: shown(t.Server)}
	switch {
	case err != nil:
		o.Status, o.Err = StatusFailed, err
		d.note(t, PhaseFailed, o.Problem())
	case b.skip != "":
		o.Status, o.Reason = StatusSkipped, b.skip
		d.note(t, PhaseSkipped, b.skip)
		d.belongs(t, b.issuer)
	default:
		o.Status, o.Login, o.Joined = StatusPending, b.login, b.joined
		d.track(b.login, true)
		d.keepEarlier(t, rd, b.login.State)
	}
	return o
}

// keepEarlier goes on to watch older logins of the account: their page may still be
// open in a browser, or in front of somebody at another terminal. Asked for a fresh
// one, it gives them up.
func (d *Driver) keepEarlier(t Target, rd *round, state string) {
	for _, p := range of(t.Account, rd.waiting) {
		switch {
		case p.State == state:
		case rd.via.Fresh:
			d.replace(p)
		case p.Device == nil: // two codes of one account cannot be polled at once
			d.track(p, false)
		}
	}
}

// replace gives up a login without a word: its account has a newer one.
func (d *Driver) replace(p auth.Pending) {
	d.mu.Lock()
	f := d.flows[p.State]
	if f != nil {
		d.drop(f)
	}
	d.mu.Unlock()
	d.giveUp([]*flow{{Pending: p}})
}
