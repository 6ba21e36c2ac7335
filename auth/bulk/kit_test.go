package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script says how the engine behaves for one server. The zero value is a good one.
type script struct {
	standing func(ctx context.Context) (Standing, error)
	begin    func(ctx context.Context, resolved func()) error // before the login is made
	complete func(ctx context.Context) error                  // before it is finished
	issuer   string
}

// scripted is an engine without a network.
type scripted struct {
	scripts map[string]script

	mu       sync.Mutex // guards everything below
	count    int
	waiting  map[string]*scriptedLogin // by state
	past     map[string]*scriptedLogin
	begun    []string // servers
	traded   []string // server and code of every exchange
	given    []string // states that were cancelled
	now, top int      // begins in flight, and the most there were
	noList   error
	joinable bool
}

type scriptedLogin struct {
	auth.Pending
	busy bool
	done chan struct{}
	err  error
}

func newScripted(scripts map[string]script) *scripted {
	return &scripted{scripts: scripts, waiting: map[string]*scriptedLogin{}, past: map[string]*scriptedLogin{}, joinable: true}
}

func (s *scripted) Standing(ctx context.Context, t Target) (Standing, error) {
	if f := s.scripts[t.Server.Name].standing; f != nil {
		return f(ctx)
	}
	return Standing{}, nil
}

func (s *scripted) Alone(ctx context.Context, _ Target, f func(context.Context) error) error {
	return f(ctx)
}

func (s *scripted) Begin(ctx context.Context, t Target, r Redirect, resolved func()) (auth.Pending, error) {
	s.mu.Lock()
	s.begun = append(s.begun, t.Server.Name)
	s.now++
	s.top = max(s.top, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()
	sc := s.scripts[t.Server.Name]
	if sc.begin != nil {
		if err := sc.begin(ctx, resolved); err != nil {
			return auth.Pending{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	state := fmt.Sprintf("state-%s-%d", t.Account, s.count)
	p := auth.Pending{
		Account: t.Account, ServerURL: t.Server.URL, Issuer: sc.issuer, Flow: auth.FlowCode, State: state,
		AuthorizeURL: "https://as.example/authorize?state=" + state, RedirectURI: "http://127.0.0.1:1/callback",
		Created: time.Now(), Expires: time.Now().Add(10 * time.Minute),
	}
	s.waiting[state] = &scriptedLogin{Pending: p, done: make(chan struct{})}
	return p, nil
}

func (s *scripted) Complete(ctx context.Context, cb auth.Callback) (*auth.Login, error) {
	s.mu.Lock()
	l := s.waiting[cb.State]
	switch {
	case l == nil:
		s.mu.Unlock()
		return nil, auth.ErrUnknownState
	case cb.HasIss && cb.Iss != l.Issuer:
		s.mu.Unlock()
		return nil, auth.ErrIssuer
	case l.busy:
		s.mu.Unlock()
		return nil, auth.ErrBeingCompleted
	}
	l.busy = true
	s.mu.Unlock()
	var err error
	if f := s.scripts[l.Account.Server].complete; f != nil {
		err = f(ctx)
	}
	if cb.Error != "" {
		err = &auth.DeniedError{Account: l.Account, Code: cb.Error}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.busy = false
	s.traded = append(s.traded, l.Account.String()+" "+cb.Code.Reveal())
	if err == nil || errors.Is(err, auth.ErrRefused) || errors.Is(err, auth.ErrDenied) {
		s.finish(l, err)
	}
	if err != nil {
		return nil, err
	}
	return &auth.Login{Account: l.Account, Issuer: l.Issuer, CanRefresh: true}, nil
}

// finish ends a login. It needs mu.
func (s *scripted) finish(l *scriptedLogin, err error) {
	if s.waiting[l.State] == l {
		delete(s.waiting, l.State)
		s.past[l.State] = l
		l.err = err
		close(l.done)
	}
}

func (s *scripted) Paste(ctx context.Context, state, text string) (*auth.Login, error) {
	got, err := oauth.ParsePaste(text)
	if err != nil {
		return nil, err
	}
	if got.State == "" {
		got.State = state
	}
	if state != "" && got.State != state {
		return nil, auth.ErrBadPaste
	}
	return s.Complete(ctx, got.Callback)
}

func (s *scripted) Wait(ctx context.Context, p auth.Pending) (*auth.Login, error) {
	s.mu.Lock()
	l := s.waiting[p.State]
	if l == nil {
		l = s.past[p.State]
	}
	s.mu.Unlock()
	if l == nil {
		return nil, auth.ErrUnknownState
	}
	timer := time.NewTimer(time.Until(p.Expires))
	defer timer.Stop()
	select {
	case <-l.done:
		if l.err != nil {
			return nil, l.err
		}
		return &auth.Login{Account: p.Account, CanRefresh: true}, nil
	case <-timer.C:
		return nil, auth.ErrExpired
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *scripted) Waiting(context.Context) ([]auth.Pending, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []auth.Pending
	for _, l := range s.waiting {
		out = append(out, l.Pending)
	}
	slices.SortFunc(out, func(a, b auth.Pending) int { return a.Created.Compare(b.Created) })
	return out, s.noList
}

func (s *scripted) Joinable(context.Context, auth.Pending, Redirect) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.joinable
}

func (s *scripted) Cancel(_ context.Context, state string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = append(s.given, state)
	if l := s.waiting[state]; l != nil {
		s.finish(l, auth.ErrDenied)
	}
	return nil
}

func (s *scripted) cancelled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.given))
}

func (s *scripted) trades() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.traded)
}

func target(name string) Target {
	return Target{
		Account: auth.ParseAccount("", name),
		Server:  config.Server{Name: name, Transport: config.TransportHTTP, URL: "https://" + name + ".example/mcp"},
	}
}

func targetsOf(names ...string) []Target {
	var out []Target
	for _, n := range names {
		out = append(out, target(n))
	}
	return out
}

// newDriver closes the driver with the test.
func newDriver(t *testing.T, e Engine, o *Options) *Driver {
	t.Helper()
	d := New(e, o)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// one is the only row.
func one(t *testing.T, d *Driver) Row {
	t.Helper()
	rows := d.Rows()
	if len(rows) != 1 {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	return rows[0]
}

// phases is what a subscription has heard so far of each server, as text.
func phases(t *testing.T, sub *event.Subscription[Event]) map[string][]string {
	t.Helper()
	sub.Close()
	out := map[string][]string{}
	for e, lost := range sub.All(context.Background()) {
		if lost > 0 {
			t.Errorf("%d events lost before %+v", lost, e)
		}
		text := string(e.Phase)
		if e.Detail != "" {
			text += ": " + e.Detail
		}
		out[e.Server] = append(out[e.Server], text)
	}
	return out
}

func hang(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

func after(wait time.Duration) func(context.Context, func()) error {
	return func(ctx context.Context, resolved func()) error {
		resolved()
		select {
		case <-time.After(wait):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
