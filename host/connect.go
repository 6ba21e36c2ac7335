package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host/internal/deadline"
	"github.com/usher-mcp/usher/host/internal/supervise"
	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

var (
	// errReplaced says that a unit is no longer the one for its key: look again.
	errReplaced = errors.New("the server has another definition by now")
	// errStale says that a dial belongs to an older epoch, or that all who waited
	// for it had left: callers that still want a connection start over.
	errStale = errors.New("the attempt to connect was given up")
)

// ready returns the connection for one more user if it is there and lives, else nil.
func (u *unit) ready() *live {
	l, _, err := u.hold()
	if err != nil || l == nil {
		return nil
	}
	if l.conn.Gone().Err() != nil {
		u.release(l)
		return nil
	}
	return l
}

// acquire returns the connection for one more user, dialling if there is none. All
// who wait share one dial, which none of them can cancel alone.
func (u *unit) acquire(ctx context.Context) (*live, error) {
	for {
		l, epoch, err := u.hold()
		if err != nil {
			return nil, err
		}
		if l != nil && l.conn.Gone().Err() == nil {
			return l, nil
		}
		if l != nil { // it died, and we are the first to notice
			u.lose(l)
			u.release(l)
			continue
		}
		if u.budget.IsEjected() {
			return nil, u.ejected()
		}
		if err := u.startLimited(); err != nil {
			return nil, err
		}
		err = u.join(ctx, epoch)
		if err != nil && !errors.Is(err, errStale) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// join waits for the dial of an epoch and starts it if nobody has.
func (u *unit) join(ctx context.Context, epoch uint64) error {
	u.mu.Lock()
	u.waiters++
	if u.interest == nil || u.interest.Err() != nil {
		u.interest, u.loseHeart = context.WithCancel(u.h.life)
	}
	interest := u.interest
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.waiters--; u.waiters == 0 {
			u.loseHeart()
			u.interest = nil
		}
	}()
	done := u.h.flights.DoChan(u.number+strconv.FormatUint(epoch, 10), func() (any, error) {
		if !u.h.begin(&u.h.wg) {
			return nil, ErrClosed
		}
		defer u.h.wg.Done()
		return nil, u.connect(interest, epoch)
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return u.gaveUp(ctx)
	}
}

// gaveUp is what a caller is told who leaves before there is a connection. It is asked
// while the dial still goes on: whether that waits for a place is not known afterwards.
func (u *unit) gaveUp(ctx context.Context) error {
	if u.wantsPlace.Load() {
		return fmt.Errorf("%w: %w", ErrBusy, context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// connect dials. Waiting (for the backoff, a place, a slot) goes on as long as
// somebody is interested; the dial itself has a timeout of its own.
func (u *unit) connect(interest context.Context, epoch uint64) error {
	if !u.enter(epoch) {
		return errStale
	}
	l := &live{u: u}
	err := u.prepare(interest, l)
	if err == nil {
		err = u.dial(l)
		l.slot()
	}
	if err == nil {
		return u.install(l, epoch)
	}
	l.discard()
	if errors.Is(err, errStale) || interest.Err() != nil && errors.Is(err, interest.Err()) {
		u.leave(epoch)
		return errStale
	}
	return u.dialFailed(epoch, err)
}

// enter shows that a dial has begun; it is false in another epoch than the dial's.
func (u *unit) enter(epoch uint64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.epoch != epoch || u.live != nil {
		return false
	}
	u.setState(Connecting, "")
	return true
}

// leave shows that a dial was given up, unless something newer is to be seen.
func (u *unit) leave(epoch uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.epoch == epoch && u.live == nil {
		u.setState(Disconnected, "")
	}
}

// prepare waits for everything that a dial needs and puts it into l.
func (u *unit) prepare(ctx context.Context, l *live) (err error) {
	if err := u.permitted(ctx); err != nil {
		return err
	}
	u.mu.Lock()
	pause := time.Until(u.notBefore)
	u.mu.Unlock()
	if err := retry.Sleep(ctx, pause); err != nil {
		return err
	}
	if u.startLimited() != nil { // by a start that failed since the dial was asked for
		return errStale
	}
	resolved, err := u.srv.Resolve(ctx, u.h.opt.Lookup)
	if err != nil {
		return &Error{Op: "connect", Server: u.key.Server, Err: err}
	}
	if l.srv = u.srv; !resolved.Same(*u.srv) { // most have no placeholders
		l.srv = &resolved
	}
	if u.srv.Singleton && u.h.opt.Lease != nil {
		if l.lease, err = u.h.opt.Lease(ctx, *u.srv); err != nil {
			return &Error{Op: "connect", Server: u.key.Server, Err: err}
		}
	}
	if l.srv.Transport == config.TransportStdio {
		u.wantsPlace.Store(true)
		err := u.h.places.Take(ctx, u.h.makeRoom)
		u.wantsPlace.Store(false)
		if err != nil {
			return err
		}
		l.hasPlace = true
	}
	l.slot, err = u.h.startSlot(ctx, *l.srv)
	return err
}

// permitted checks what needs no process and no packet.
func (u *unit) permitted(ctx context.Context) error {
	switch {
	case u.srv.Problem != nil:
		return &Error{Op: "connect", Server: u.key.Server, Err: fmt.Errorf("%w: %w", ErrDisabled, u.srv.Problem), Advice: "fix its definition", Action: ActionReload}
	case u.srv.Disabled:
		return &Error{Op: "connect", Server: u.key.Server, Err: ErrDisabled, Advice: `remove "disabled" from its definition`}
	case u.h.opt.Approved == nil:
		return nil
	}
	if err := u.h.opt.Approved(ctx, *u.srv); err != nil {
		return &Error{Op: "connect", Server: u.key.Server, Err: fmt.Errorf("%w: %w", ErrHeldBack, err), Action: ActionApprove}
	}
	return nil
}

// dial makes the connection, again after a refusal that the Authorizer could do
// something about.
func (u *unit) dial(l *live) error {
	ctx, p := deadline.With(u.h.life, u.srv.Timeouts.Connect, nil)
	defer p.End()
	l.ctx, l.stop = context.WithCancel(u.h.life)
	c, err := u.dialOnce(ctx, l)
	var refusal *upstream.UnauthorizedError
	for n := 1; errors.As(err, &refusal); n++ {
		if err = u.refused(ctx, *l.srv, refusal, n); err == nil {
			c, err = u.dialOnce(ctx, l)
		}
	}
	switch {
	case err == nil:
		l.conn = c
		return nil
	case u.h.life.Err() != nil:
		return ErrClosed
	case ctx.Err() != nil:
		return &deadline.TimeoutError{After: u.srv.Timeouts.Connect}
	}
	return err
}

func (u *unit) dialOnce(ctx context.Context, l *live) (conn, error) {
	opt := u.base
	doubt := u.doubtsEra()
	if known := u.era.Swap(nil); opt.Version == "" && known != nil {
		opt.Version = *known
	} else if opt.Version == "" && doubt != eraWrong {
		opt.Version, _ = u.h.opt.Memory.Era(ctx, u.digest)
	}
	opt.OneStart, opt.OnStart = doubt == eraRight || u.budget.Wait(2) > 0, u.budget.Started
	opt.OnNotification = u.heard
	if opt.Executable == "" {
		opt.Executable = u.h.opt.Executable
	}
	if opt.Transport == nil {
		opt.Transport = u.h.opt.Transport
		if u.h.opt.TransportFor != nil {
			opt.Transport = u.h.opt.TransportFor(ctx, *u.srv)
		}
	}
	if opt.Log == nil {
		opt.Log = u.h.opt.Log
	}
	if auth := u.h.opt.Auth; auth != nil && l.srv.Transport != config.TransportStdio {
		opt.Authorize = func(req *http.Request) error { return auth.Authorize(req.Context(), u.key, l.srv, req) }
		opt.Refused = func(ctx context.Context, refusal *upstream.UnauthorizedError) error {
			return auth.Refused(ctx, u.key, *l.srv, refusal)
		}
	}
	u.h.count.dials.Add(1)
	return u.h.dial(ctx, l.srv, &opt)
}

// What a dial believes about the remembered era of a server.
const (
	eraUnproven = iota // the first dial: a child that exits when asked may be started once more
	eraRight           // one of the next: the server does not start, whatever it is asked
	eraWrong           // each fifth: another program may be behind the same command by now
)

// doubtsEra says what the next dial believes about the remembered era.
func (u *unit) doubtsEra() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.dialFails == 0:
		return eraUnproven
	case u.dialFails%5 != 0:
		return eraRight
	}
	return eraWrong
}

// startsOfDial is how many processes the next dial may start.
func (u *unit) startsOfDial() int {
	if u.doubtsEra() == eraRight {
		return 1
	}
	return 2
}

// maxRefusals of one request are put to the Authorizer. The first may be of a
// credential that another process has replaced, or ask for a nonce, and the second of
// one that has to be renewed.
const maxRefusals = 2

// refused asks the Authorizer what to do about the n-th refusal; nil is to try again.
func (u *unit) refused(ctx context.Context, srv config.Server, refusal *upstream.UnauthorizedError, n int) error {
	no := &NeedsLoginError{Reason: fmt.Sprintf("the server answered HTTP %d", refusal.Status), Command: u.login()}
	switch {
	case u.h.opt.Auth == nil:
		return no
	case n > maxRefusals:
		no.Reason += " to a credential that was just renewed"
		return no
	}
	return u.h.opt.Auth.Refused(ctx, u.key, srv, refusal)
}

// discard gives back what a dial that came to nothing had taken.
func (l *live) discard() {
	if l.stop != nil {
		l.stop()
	}
	if l.hasPlace {
		l.u.h.places.Free(false)
	}
	if l.lease != nil {
		l.lease()
	}
}

// dialFailed records a failed dial, once for all who waited for it.
func (u *unit) dialFailed(epoch uint64, err error) error {
	u.h.count.dialFailures.Add(1)
	e := &dialError{err: err, kind: dialKind(err)}
	u.mu.Lock()
	current := u.epoch == epoch && u.live == nil
	ejected := false
	u.dialFails++
	switch {
	case !current: // a late failure must not hide that somebody else has connected
	case e.kind == refused:
		u.needLogin(err)
	case e.kind.bad():
		ejected = u.down(err, !u.paid && costsRestart(e.kind, err))
		u.paid = false
	default:
		u.lastErr = err
		u.setState(Failed, err.Error())
	}
	u.mu.Unlock()
	switch {
	case !current:
		return errStale
	case e.kind == refused:
		u.log(slog.LevelWarn, "login required", "reason", reason(err))
	case e.kind.bad():
		u.logDown("cannot connect", err, ejected)
	default:
		u.log(slog.LevelWarn, "cannot connect", "reason", reason(err))
	}
	return e
}

// install puts a fresh connection into use.
func (u *unit) install(l *live, epoch uint64) error {
	u.learnEra(l)
	u.recall(l.ctx)
	u.catalog.connected(l)
	u.listen(l)
	h := u.h
	h.mu.Lock()
	usable := !h.closed
	if usable {
		h.open[l] = struct{}{}
	}
	h.mu.Unlock()
	if !usable {
		l.shut()
		return ErrClosed
	}
	u.mu.Lock()
	if u.epoch != epoch || u.live != nil {
		u.budget.ForgetStart()
		u.mu.Unlock()
		l.shut()
		return errStale
	}
	u.live, u.used, u.paid, u.dialFails = l, time.Now(), false, 0
	l.unwatch = context.AfterFunc(l.conn.Gone(), func() { h.spawn(func() { u.lose(l) }) })
	u.setState(Connected, "")
	u.mu.Unlock()
	u.log(slog.LevelInfo, "connected", "protocol", l.conn.Version())
	// Those who waited take it in a moment; should they all have left, it goes.
	u.rest(max(u.srv.KeepAlive, time.Second))
	return nil
}

// learnEra keeps what a connection shows of the server's era. One that was to speak
// a certain revision says nothing about the one the server likes best, but may say
// that there is no older one.
func (u *unit) learnEra(l *live) {
	version := l.conn.Version()
	switch {
	case u.base.Version == "":
		u.h.opt.Memory.RememberEra(l.ctx, u.digest, version)
	case mcp.Stateless(version) && !mcp.Stateless(u.base.Version):
		u.reg.modern.Store(version)
	}
}

// lose takes in that a connection ended without our doing.
func (u *unit) lose(l *live) {
	u.mu.Lock()
	if u.live != l {
		u.mu.Unlock()
		return
	}
	u.take()
	why := whyLost(l)
	ejected := u.down(why, true)
	u.paid = true
	u.mu.Unlock()
	u.h.count.losses.Add(1)
	u.logDown("the connection was lost", why, ejected)
	l.drain(u.h.opt.Drain)
}

var errLost = errors.New("the server ended the connection")

// whyLost is why a connection is gone, where we ended it because of a limit.
func whyLost(l *live) error {
	if cause := context.Cause(l.conn.Gone()); errors.Is(cause, upstream.ErrLimit) {
		return cause
	}
	return errLost
}

// How long a start may hold its slot. A child that has not answered by then is
// waiting rather than working, and must not keep others from starting.
const (
	directSlot = 3 * time.Second
	runnerSlot = 15 * time.Second
)

// startSlot waits until srv may start. Only children are counted: a URL costs this
// machine nothing.
func (h *Host) startSlot(ctx context.Context, srv config.Server) (release func(), err error) {
	switch {
	case srv.Transport != config.TransportStdio:
		return func() {}, nil
	case supervise.IsRunner(srv.Command, srv.Args):
		return h.runners.Take(ctx, runnerSlot)
	}
	return h.starts.Take(ctx, directSlot)
}
