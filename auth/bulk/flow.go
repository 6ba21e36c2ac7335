package bulk

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
)

// Bounds of watching a login.
const (
	watchAgain    = time.Second     // after a failure that will pass
	cancelTimeout = 5 * time.Second // to give up a login that is not needed any more
)

// flow is a login that waits. Of several that wait for one account the newest is
// shown; whichever is finished first connects it, and the others are given up.
type flow struct {
	auth.Pending
	account auth.Account
	stop    context.CancelFunc // ends the watch
	turn    chan struct{}      // holds a token while an answer is dealt with

	// Guarded by the driver's mu.
	exchanging bool
	trouble    string   // why a code could not be exchanged, last time
	secrets    []string // what must not be shown: the state, and the latest codes
}

// track begins to watch a login. A login that is shown takes its account to
// awaiting_consent.
func (d *Driver) track(p auth.Pending, show bool) *flow {
	a := normal(p.Account)
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.flows[p.State]
	if d.closed {
		return f
	}
	if f == nil {
		ctx, stop := context.WithCancel(d.life)
		f = &flow{Pending: p, account: a, stop: stop, turn: make(chan struct{}, 1), secrets: []string{p.State}}
		d.flows[p.State] = f
		d.work.Go(func() {
			defer stop()
			d.watch(ctx, f)
		})
	}
	if !show {
		return f
	}
	r := d.rowOf(a, shown(config.Server{URL: p.ServerURL}))
	if r.state != p.State || r.Phase != PhaseAwaiting && r.Phase != PhaseExchanging {
		r.state, r.issuer = p.State, p.Issuer
		d.enter(r, PhaseAwaiting, "")
	}
	return f
}

// watch waits for the end of a login, in whichever process it ends.
func (d *Driver) watch(ctx context.Context, f *flow) {
	for {
		login, err := guard(func() (*auth.Login, error) { return d.engine.Wait(ctx, f.Pending) })
		switch {
		case err == nil:
			d.end(f, PhaseConnected, about(login))
			return
		case ctx.Err() != nil:
			return
		case over(err) || !time.Now().Before(f.Expires):
			d.end(f, PhaseFailed, d.words(f, err))
			return
		}
		// The store is out of reach, or the engine broke: the login may still be alive.
		timer := time.NewTimer(watchAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// maxCodes is how many codes of one login are remembered. Only forgers send more.
const maxCodes = 8

// hide remembers a code, so that it is not shown.
func (d *Driver) hide(f *flow, code string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(f.secrets) > maxCodes {
		f.secrets = append(f.secrets[:1], f.secrets[2:]...)
	}
	f.secrets = append(f.secrets, code)
}

// words is an error of a login as it may be shown.
func (d *Driver) words(f *flow, err error) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return redact(err.Error(), f.secrets...)
}

// over reports errors after which a login is gone.
func over(err error) bool {
	for _, final := range []error{auth.ErrDenied, auth.ErrRefused, auth.ErrExpired, auth.ErrUnknownState, auth.ErrReplaced} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// about says what is odd about a finished login; "" when nothing is.
func about(l *auth.Login) string {
	if l == nil {
		return ""
	}
	var odd []string
	if len(l.Missing) > 0 {
		odd = append(odd, "not granted: "+strings.Join(l.Missing, " "))
	}
	if !l.CanRefresh && !l.Expires.IsZero() {
		odd = append(odd, "no refresh token: ends "+l.Expires.UTC().Format(time.RFC3339))
	}
	return redact(strings.Join(odd, "; "))
}

// end takes a login out, once, and tells how it ended.
func (d *Driver) end(f *flow, p Phase, detail string) {
	d.mu.Lock()
	if d.flows[f.State] != f {
		d.mu.Unlock()
		return
	}
	d.drop(f)
	r := d.rowOf(f.account, "")
	wasShown := r.state == f.State
	var rest []*flow
	if p == PhaseConnected {
		rest = d.loginsOf(f.account)
		for _, other := range rest {
			d.drop(other)
		}
	}
	switch {
	case p == PhaseConnected:
		if !f.exchanging {
			d.enter(r, PhaseExchanging, "") // it was, elsewhere
		}
		d.enter(r, p, detail)
	case wasShown:
		if f.trouble != "" {
			detail = strings.Join([]string{detail, "last try: " + f.trouble}, "; ")
		}
		d.enter(r, p, detail)
	}
	d.mu.Unlock()
	d.giveUp(rest)
}

// drop stops watching. It needs mu.
func (d *Driver) drop(f *flow) {
	delete(d.flows, f.State)
	f.stop()
	close(d.moved)
	d.moved = make(chan struct{})
}

// giveUp forgets logins that are not needed any more. If that fails they run out by
// themselves.
func (d *Driver) giveUp(flows []*flow) {
	for _, f := range flows {
		d.spawn(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(d.life), cancelTimeout)
			defer cancel()
			_, _ = guard(func() (struct{}, error) { return struct{}{}, d.engine.Cancel(ctx, f.State) })
		})
	}
}

// PanicError is what a panic of the engine is turned into, so that it touches only
// the account that was being worked on.
type PanicError struct {
	Value any
	// Stack is for logs only.
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("a fault in usher: %v; please report it", e.Value)
}

// guard calls f and turns a panic into an error.
func guard[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return f()
}
