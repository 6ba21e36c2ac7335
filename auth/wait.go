package auth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// outcome is how a login ended.
type outcome struct {
	login *Login
	err   error
}

// outcomeLog knows the logins that ended in this process, for those who wait and for
// the browser that asks twice.
type outcomeLog struct {
	mu    sync.Mutex // guards by, order
	by    map[string]*loginOutcome
	order []string // of by, the oldest first
}

type loginOutcome struct {
	done  chan struct{} // closed when out is set
	out   outcome
	since time.Time
	begun *pending // set when the login was begun here
}

func (b *outcomeLog) of(state string) *loginOutcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := stateName(state)
	if b.by == nil {
		b.by = map[string]*loginOutcome{}
	}
	w := b.by[name]
	if w == nil {
		b.makeRoom()
		w = &loginOutcome{done: make(chan struct{}), since: time.Now()}
		b.by[name] = w
		b.order = append(b.order, name)
	}
	return w
}

// makeRoom forgets logins of long ago, and the oldest if there are too many: a caller
// that waits for one finds its end in the store. It needs mu.
func (b *outcomeLog) makeRoom() {
	for len(b.order) > 0 {
		oldest := b.order[0]
		if len(b.by) < limit.LoginOutcomes && time.Since(b.by[oldest].since) <= 2*pendingLife {
			return
		}
		delete(b.by, oldest)
		b.order = b.order[1:]
	}
}

// begin notes a login that was begun here, so that its end can be told even when
// another process was faster than the caller that waits.
func (b *outcomeLog) begin(p *pending) {
	w := b.of(p.State.Reveal())
	b.mu.Lock()
	defer b.mu.Unlock()
	w.begun = p
}

// begunHere returns the login if it was begun here.
func (b *outcomeLog) begunHere(state string) *pending {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.by[stateName(state)]; w != nil {
		return w.begun
	}
	return nil
}

// finish says how a login ended; the first word counts.
func (b *outcomeLog) finish(state string, out outcome) {
	w := b.of(state)
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.done:
	default:
		w.out = out
		close(w.done)
	}
}

// ended returns how a login ended, if it did so here.
func (b *outcomeLog) ended(state string) (outcome, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.by[stateName(state)]
	if w == nil {
		return outcome{}, false
	}
	select {
	case <-w.done:
		return w.out, true
	default:
		return outcome{}, false
	}
}

// lookAgain is how often Wait looks when nobody tells it anything.
const lookAgain = 5 * time.Second

// Wait returns when the login with this state ended, here or in another process, or
// with [ErrExpired] when its time is up, or when ctx ends. The login itself is not
// affected by ctx.
func (e *Engine) Wait(ctx context.Context, state string) (*Login, error) {
	p, err := e.pendings.find(ctx, state)
	if err != nil {
		if out, ok := e.pendings.waiting.ended(state); ok {
			return out.login, out.err
		}
		if begun := e.pendings.waiting.begunHere(state); begun != nil && errors.Is(err, ErrUnknownState) && !errors.Is(err, ErrExpired) {
			if login, err, over := e.pendings.endedElsewhere(ctx, begun); over {
				return login, err
			}
		}
		return nil, err
	}
	return e.pendings.await(ctx, p)
}

// await is Wait for a login that was found.
func (pl *pendingLogins) await(ctx context.Context, p *pending) (*Login, error) {
	w := pl.waiting.of(p.State.Reveal())
	changed, stop := pl.watch(ctx, p.State.Reveal())
	defer stop()
	if login, err, over := pl.endedElsewhere(ctx, p); over { // before anybody watched
		return login, err
	}
	end := time.NewTimer(time.Until(p.Expires))
	defer end.Stop()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		select {
		case <-w.done:
			return w.out.login, w.out.err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-pl.Life.Done():
			return nil, ErrClosed
		case <-end.C:
			return nil, p.tooLate()
		case <-changed:
		case <-look.C:
		}
		if login, err, over := pl.endedElsewhere(ctx, p); over {
			return login, err
		}
	}
}

// endedElsewhere looks whether another process finished the login.
func (pl *pendingLogins) endedElsewhere(ctx context.Context, p *pending) (*Login, error, bool) {
	_, err := pl.find(ctx, p.State.Reveal())
	switch {
	case errors.Is(err, ErrExpired):
		return nil, p.tooLate(), true
	case !errors.Is(err, ErrUnknownState):
		return nil, nil, false // still there, or the store cannot be asked
	}
	// This process deletes the record a moment before it says how it ended.
	select {
	case <-pl.waiting.of(p.State.Reveal()).done:
		out, _ := pl.waiting.ended(p.State.Reveal())
		return out.login, out.err, true
	case <-time.After(100 * time.Millisecond):
	}
	login, err := pl.obtained(ctx, p.view())
	if err != nil {
		return nil, nil, false
	}
	out := outcome{login: login}
	switch {
	case login != nil:
	case !time.Now().Before(p.Expires):
		out.err = p.tooLate() // and was cleared away
	default:
		out.err = fmt.Errorf("login to %s: %w: it ended in another process", p.account(), ErrDenied)
	}
	pl.waiting.finish(p.State.Reveal(), out) // for a browser that asks once more
	return out.login, out.err, true
}

// Obtained returns the login that an account has got since p began, in whichever
// process, or nil. It asks the store, and not what was read of it a moment ago.
func (e *Engine) Obtained(ctx context.Context, p *Pending) (*Login, error) {
	return e.pendings.obtained(ctx, p)
}

func (pl *pendingLogins) obtained(ctx context.Context, p *Pending) (*Login, error) {
	a := p.Account.Normal()
	g, err := pl.grants.Load(ctx, a)
	if err != nil && !errors.Is(err, vault.ErrCorrupt) {
		return nil, err
	}
	if err != nil || g == nil || g.Ended != nil || g.Version == p.Had {
		return nil, nil
	}
	pl.grants.Remember(a, g) // what was remembered is older
	return loginOf(a, g), nil
}

// watch signals changes of a login's record. Changes are hints: without
// them Wait looks now and then.
func (pl *pendingLogins) watch(ctx context.Context, state string) (<-chan struct{}, func()) {
	changed := make(chan struct{}, 1)
	sub, err := pl.Store.Watch(ctx)
	if err != nil {
		return changed, func() {}
	}
	key := pendingKey(state)
	var wg sync.WaitGroup
	wg.Go(func() { forward(sub, key, changed) })
	return changed, func() {
		sub.Close()
		wg.Wait()
	}
}

func forward(sub *event.Subscription[vault.Change], key vault.Key, changed chan<- struct{}) {
	for c, lost := range sub.All(context.Background()) {
		if c.Key == key || lost > 0 {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}
}
