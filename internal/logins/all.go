package logins

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
)

// loginAllWait is how long an agent waits for the addresses of a login to all
// servers; slower servers show in its status.
const loginAllWait = 15 * time.Second

var (
	errRoundRuns     = errors.New("a login to all servers is being prepared already")
	errTooManyRounds = errors.New("too many logins to all servers run at once; try again later")
)

// loginRound is one login of a principal to all servers.
type loginRound struct {
	stop  context.CancelFunc
	ready chan struct{} // closed when all logins have begun or failed

	mu   sync.Mutex // guards done
	done map[string]policy.Login
}

// startRound makes the round of a principal, in place of one whose logins only wait:
// they go on to wait in the store, and the new round takes them up.
func (b *pendingLogins) startRound(principal string, stop context.CancelFunc) (*loginRound, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.rounds[principal]; old != nil {
		select {
		case <-old.ready:
			old.stop()
		default:
			return nil, errRoundRuns
		}
	} else if len(b.rounds) >= limit.LoginRounds {
		return nil, errTooManyRounds
	}
	if b.rounds == nil {
		b.rounds = map[string]*loginRound{}
	}
	r := &loginRound{stop: stop, ready: make(chan struct{}), done: map[string]policy.Login{}}
	b.rounds[principal] = r
	return r, nil
}

func (b *pendingLogins) endRound(principal string, r *loginRound) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rounds[principal] == r {
		delete(b.rounds, principal)
	}
}

// BeginAll starts logins for those of a principal's accounts that need one.
func (l *AgentLogins) BeginAll(ctx context.Context, principal string, keys []host.Key) ([]policy.Login, error) {
	principal = cmp.Or(principal, vault.Local)
	life, stop := context.WithTimeout(l.m.life, loginTime+loginGrace)
	r, err := l.m.pending.startRound(principal, stop)
	if err != nil {
		stop()
		return nil, err
	}
	targets := l.targets(ctx, keys)
	l.m.background.Go(func() {
		defer stop()
		defer l.m.pending.endRound(principal, r)
		l.runRound(life, principal, r, targets)
	})
	timer := time.NewTimer(loginAllWait)
	defer timer.Stop()
	select {
	case <-r.ready:
	case <-timer.C:
	case <-ctx.Done():
	}
	return r.logins(targets), nil
}

// targets are the accounts with their servers; one that cannot be used comes with its
// reason.
func (l *AgentLogins) targets(ctx context.Context, keys []host.Key) []bulk.Target {
	out := make([]bulk.Target, 0, len(keys))
	for _, k := range keys {
		a := account(k)
		srv, err := l.m.Target(ctx, a)
		if err == nil {
			err = l.m.mayDiscover(a, srv)
		}
		if err != nil {
			srv = config.Server{Name: a.Server, Transport: config.TransportHTTP, Problem: err}
		}
		out = append(out, bulk.Target{Account: a, Server: srv})
	}
	return out
}

// runRound begins the logins and follows them until all have ended.
func (l *AgentLogins) runRound(ctx context.Context, principal string, r *loginRound, targets []bulk.Target) {
	engine := bulk.NewEngine(l.m.engine, &bulk.EngineOptions{Principal: principal, Where: loginWhere})
	d := bulk.New(&loginEngine{engine, l}, &bulk.Options{Bulk: l.m.config().Usher.Bulk, Backlog: 8*len(targets) + 16})
	sub := d.Subscribe()
	var heard sync.WaitGroup
	heard.Go(func() {
		for e := range sub.All(context.Background()) { // ends with the driver
			l.heard(auth.ParseAccount(principal, e.Server), e)
		}
	})
	d.Prepare(ctx, targets, bulk.ModeMissing, bulk.Redirect{Device: true}, func(o bulk.Outcome) { r.add(l, o) })
	l.m.accounts.Expire(principal)
	close(r.ready)
	_ = d.Wait(ctx) // logins that wait go on to wait in the store
	_ = d.Close()   // always nil
	heard.Wait()    // the last words
	sub.Close()
}

// heard takes in what became of an account.
func (l *AgentLogins) heard(a auth.Account, e bulk.Event) {
	switch e.Phase {
	case bulk.PhaseAwaiting:
		l.m.pending.clear(a)
	case bulk.PhaseConnected:
		l.m.pending.clear(a)
		_ = l.m.Reconnect(l.m.life, a) // the next call connects anyway
	case bulk.PhaseFailed:
		if s, err := l.m.engine.Status(l.m.life, a); err == nil && s.Pending != nil {
			return // another login of the account waits
		}
		l.failedBecause(a, cutReason(e.Detail))
	}
}

// add takes in how the preparation of one account ended. Accounts that need no login
// are left out.
func (r *loginRound) add(l *AgentLogins, o bulk.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch o.Status {
	case bulk.StatusPending:
		r.done[o.Server] = shownLogin(&o.Login, l.flowOf(&o.Login))
	case bulk.StatusFailed:
		r.done[o.Server] = policy.Login{Server: o.Server, State: policy.LoginFailed, Reason: cutReason(o.Problem())}
	default:
		r.done[o.Server] = policy.Login{}
	}
}

// logins returns how each account stands, in the order of the targets.
func (r *loginRound) logins(targets []bulk.Target) []policy.Login {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []policy.Login
	for _, t := range targets {
		name := t.Account.String()
		switch one, ok := r.done[name]; {
		case !ok:
			out = append(out, policy.Login{Server: name, State: policy.LoginPreparing})
		case one.State != "":
			out = append(out, one)
		}
	}
	return out
}

// loginEngine begins logins in the way that the server or the situation asks for.
type loginEngine struct {
	bulk.Engine
	l *AgentLogins
}

// Begin implements [bulk.Engine].
func (e *loginEngine) Begin(ctx context.Context, t bulk.Target, via bulk.Redirect, resolved func()) (auth.Pending, error) {
	p, _, err := e.l.begin(ctx, t.Account, t.Server)
	if err == nil {
		resolved()
		return *p, nil
	}
	var refused *auth.TokenError
	if errors.As(err, &refused) || errors.Is(err, auth.ErrNoClient) {
		via.Device = false
		return e.Engine.Begin(ctx, t, via, resolved) // knows whether the server asks for a login at all
	}
	return auth.Pending{}, err
}

// Joinable implements [bulk.Engine].
func (e *loginEngine) Joinable(ctx context.Context, p auth.Pending, _ bulk.Redirect) bool {
	return e.l.joinable(ctx, p)
}
