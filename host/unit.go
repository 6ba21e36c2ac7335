package host

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host/internal/supervise"
	"github.com/usher-mcp/usher/upstream"
)

// State is where a connection is in its life.
type State string

// The states. Failed and NeedsAuth come with a reason; Ejected lasts for
// supervision.ejectionReset or until Reload, all others until the next request.
const (
	Disconnected State = "disconnected"
	Connecting   State = "connecting"
	Connected    State = "connected"
	Failed       State = "failed"
	NeedsAuth    State = "needs_auth"
	Ejected      State = "ejected"
)

// Backoff between attempts to connect after a failure.
const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// unit is one supervised connection: a server for one key. Its definition never
// changes; another definition gets another unit. What every call touches stands
// together, see upstream.Conn.
type unit struct {
	h          *Host
	srv        *config.Server // placeholders unresolved
	gone       atomic.Bool    // replaced, to be seen without mu
	wantsPlace atomic.Bool    // its dial waits for a place
	ahead      atomic.Pointer[ahead]
	breaker    supervise.Breaker
	budget     supervise.Restarts
	catalog    catalog

	reg    *registration
	key    Key
	digest string
	number string // differs from that of all other units, for what they share
	base   upstream.Options
	era    atomic.Pointer[string] // for the next dial, where it has been looked up

	changes [3]supervise.Throttle // announcements of changed lists, see listKind
	lines   supervise.LogPace

	mu        sync.Mutex // guards what follows
	live      *live
	used      time.Time
	wakes     time.Time // when idle does; zero when it does not
	state     State
	lastErr   error
	notBefore time.Time // no dial before
	backoff   backoff.ExponentialBackOff
	epoch     uint64 // grows with Reload, Reconnect and Stop: what began before changes nothing
	replaced  bool   // the registration ended or has another definition
	dialFails int    // in a row
	paid      bool   // the next dial is the restart that was charged for a lost connection
	waiters   int    // callers waiting for a connection
	interest  context.Context
	loseHeart context.CancelFunc // ends interest
	idle      *time.Timer
	reason    string // of failed and needs_auth
	command   string // the way out of needs_auth
}

func (h *Host) newUnit(k Key, reg *registration) *unit {
	srv := reg.srv
	u := &unit{
		h: h, reg: reg, key: k, srv: srv, digest: srv.Digest(), state: Disconnected, used: time.Now(),
		number:  strconv.FormatInt(h.made.Add(1), 36) + " ",
		budget:  supervise.Restarts{Max: srv.Supervision.RestartLimit(), Window: srv.Supervision.RestartWindow, Reset: srv.Supervision.EjectionTime()},
		backoff: backoff.ExponentialBackOff{InitialInterval: firstBackoff, MaxInterval: maxBackoff, Multiplier: 2, RandomizationFactor: 0.5},
	}
	u.breaker.Init(srv.Supervision.CircuitThreshold, srv.Supervision.CircuitReset)
	u.catalog.pool, u.catalog.owner = reg.lists, k.Principal
	if h.opt.Connection != nil {
		u.base = h.opt.Connection(k)
	}
	u.base.Pace = reg.pace
	return u
}

// setState needs mu.
func (u *unit) setState(to State, reason string) {
	from := u.state
	u.state, u.reason = to, reason
	if to != NeedsAuth {
		u.command = ""
	}
	if from == to || u.h.opt.Events == nil {
		return
	}
	u.h.opt.Events.Publish(event.ServerChanged{Header: u.header(), From: string(from), To: string(to), Reason: reason})
}

func (u *unit) header() event.Header {
	h := event.Header{At: time.Now(), Server: u.key.Server, Account: u.key.Account}
	if u.key.Principal != Local {
		h.Principal = u.key.Principal
	}
	return h
}

// admit asks the restart budget and the breaker for permission to try.
func (u *unit) admit() (supervise.Ticket, error) {
	ejected, ended := u.budget.Check()
	if ejected {
		return supervise.Ticket{}, u.ejected()
	}
	if ended {
		u.ejectionEnded()
	}
	t, wait, ok := u.breaker.Allow()
	if !ok {
		return supervise.Ticket{}, u.circuitOpen(wait)
	}
	return t, nil
}

// ejectionEnded shows that an ejection has lasted long enough. One request may find out
// whether the server works again.
func (u *unit) ejectionEnded() {
	u.breaker.Suspect()
	u.mu.Lock()
	u.paid = false
	if u.state == Ejected {
		u.setState(Disconnected, "")
	}
	u.mu.Unlock()
	u.log(slog.LevelInfo, "the ejection is over, the next request tries to connect")
}

// settle hands a ticket back. Of all who met with the same fault only the first
// counts, except for a probe, whose result is awaited.
func (u *unit) settle(t supervise.Ticket, v supervise.Verdict, f *fault) (opened bool) {
	if v == supervise.Failure && f != nil && f.struck.Swap(true) && !t.Probe {
		v = supervise.Neither
	}
	switch u.breaker.Done(t, v) {
	case supervise.Open:
		if u.srv.Transport == config.TransportStdio {
			u.breaker.Delay(u.budget.Wait(u.startsOfDial()))
		}
		u.circuitOpened()
		return true
	case supervise.Closed:
		u.log(slog.LevelInfo, "the circuit is closed, the server works again")
		u.circuitChanged(false)
	}
	return false
}

// startLimited is nil when a process may be started. Else the circuit is open until it
// may.
func (u *unit) startLimited() error {
	wait := u.budget.WaitStart(u.breaker.IsClosed())
	if wait <= 0 {
		return nil
	}
	if u.breaker.Trip(wait) {
		u.circuitOpened()
	}
	return u.circuitOpen(max(wait, u.breaker.Left()))
}

func (u *unit) circuitOpened() {
	u.h.count.opened.Add(1)
	u.logOpened()
	u.circuitChanged(true)
}

// circuitChanged publishes that the circuit opened or closed.
func (u *unit) circuitChanged(opened bool) {
	if u.h.opt.Events != nil {
		u.h.opt.Events.Publish(event.CircuitChanged{Header: u.header(), Open: opened})
	}
}

// down shows that there is no connection because of err, and sets the earliest time
// of the next dial. A restart is charged once for every connection that was lost
// and every dial that failed, except that the first dial after a loss is the restart
// that was charged for the loss. It may be one too many, but not that of a probe. It
// needs mu; logging what it returns must wait until mu is free.
func (u *unit) down(err error, charge bool) (ejected bool) {
	u.lastErr = err
	u.notBefore = time.Now().Add(min(u.backoff.NextBackOff(), maxBackoff))
	if charge && u.budget.Spend(!u.breaker.IsClosed()) {
		u.h.count.ejections.Add(1)
		u.setState(Ejected, err.Error())
		return true
	}
	u.setState(Failed, err.Error())
	return false
}

// worked takes in that the server answered on l.
func (u *unit) worked(l *live) {
	u.budget.Worked()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.backoff.Reset()
	u.notBefore = time.Time{}
	if u.live == l {
		u.lastErr = nil
		u.setState(Connected, "")
		if !l.worked {
			l.worked = true
			u.budget.ForgetStart()
		}
	}
}

// needLogin shows that nothing goes on without a person; it needs mu.
func (u *unit) needLogin(err error) {
	need := &NeedsLoginError{Command: u.login()}
	errors.As(err, &need)
	u.lastErr = err
	u.setState(NeedsAuth, need.Reason)
	u.command = need.Command
}

// login is the command for a person who has to log in; "" when the program has none.
func (u *unit) login() string {
	if u.h.opt.LoginCommand == nil {
		return ""
	}
	return u.h.opt.LoginCommand(u.key)
}

// renew forgets what supervision knows and takes the connection out of use. The
// connection is returned; closing or draining it is the caller's.
func (u *unit) renew(replaced bool) *live {
	u.breaker.Clear()
	u.budget.Clear()
	u.catalog.expire()
	if replaced {
		u.catalog.close()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.epoch++
	if u.replaced = u.replaced || replaced; u.replaced {
		u.gone.Store(true)
	}
	if !replaced {
		u.reg.modern.Store("") // it may be another program by now
	}
	u.backoff.Reset()
	u.notBefore, u.lastErr, u.paid, u.dialFails = time.Time{}, nil, false, 0
	l := u.take()
	u.setState(Disconnected, "")
	if u.loseHeart != nil {
		u.loseHeart() // a dial of the older epoch need not wait any longer
		u.interest = nil
	}
	return l
}

// reconnect takes the connection out of use and keeps what supervision knows. The
// connection is returned; draining it is the caller's.
func (u *unit) reconnect() *live {
	u.catalog.expire()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.epoch++
	l := u.take()
	if l != nil {
		u.budget.ForgetStart()
	}
	if u.state != Ejected {
		u.lastErr = nil
		u.setState(Disconnected, "")
	}
	if u.loseHeart != nil {
		u.loseHeart() // a dial of the older epoch has the older login
		u.interest = nil
	}
	return l
}
