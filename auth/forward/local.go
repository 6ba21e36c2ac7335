package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/internal/limit"
)

// maxRedirects is at how many addresses the local side listens for the remote one.
const maxRedirects = 64

// verdictLimit is how long a browser is kept waiting for the remote side's verdict.
const verdictLimit = 110 * time.Second

// Local is the side where the person and the browser are. It offers what a [bulk.Driver] offers to
// the code that shows logins. All methods may be called from any goroutine, but
// Hello, Order and Run once each and in this order.
type Local struct {
	in  *reader
	out *writer
	bus event.Bus[bulk.Event]

	mu    sync.Mutex // guards everything below
	rows  map[string]*bulk.Row
	order []string
	known map[string]*verdict // by state; of every login that was shown
	over  chan struct{}       // closed when the line is
}

// verdict is what became of the answers to one login.
type verdict struct {
	final   *result
	waiting []chan result
}

// NewLocal talks over the standard streams of the command that reaches the remote side.
// Noise hears lines that are not part of the talk, such as a login shell's greeting;
// nil does not.
func NewLocal(in io.Reader, out io.Writer, noise func(line string)) *Local {
	return &Local{
		in: newReader(in, fromRemote, noise), out: &writer{mark: fromLocal, w: out},
		rows: map[string]*bulk.Row{}, known: map[string]*verdict{}, over: make(chan struct{}),
	}
}

// Hello waits for the remote side. The error is [io.EOF] when the command ended
// before, and a [Fault] when the remote side says why it cannot serve.
func (n *Local) Hello(here string) (Hello, error) {
	for {
		m, err := n.in.next()
		switch {
		case err != nil:
			return Hello{}, err
		case m.Kind == kindFault:
			return Hello{}, m.Fault
		case m.Kind != kindHello:
			continue
		}
		h := *m.Hello
		if h.Protocol != Protocol {
			return h, versionError(h.Usher, here)
		}
		h.Redirects = h.Redirects[:min(len(h.Redirects), maxRedirects)]
		return h, nil
	}
}

// Order says what to log in.
func (n *Local) Order(o Order) error {
	o.Protocol = Protocol
	return n.out.send(message{Kind: kindOrder, Order: &o})
}

// Run takes in what the remote side tells until it is done (nil), or until the line
// breaks: then the error is [io.EOF], or says what is wrong with it. OnRow hears of
// every step, and prepared when everything has been begun; both may be nil.
func (n *Local) Run(onRow func(bulk.Row), prepared func()) error {
	defer n.hangUp()
	for {
		m, err := n.in.next()
		if err != nil {
			return err
		}
		switch m.Kind {
		case kindRow:
			r, err := n.take(*m.Row)
			if err != nil {
				return err
			}
			if onRow != nil {
				onRow(r)
			}
		case kindAnswered:
			n.settle(*m.Answered)
		case kindPrepared:
			if prepared != nil {
				prepared()
			}
		case kindFault:
			return m.Fault
		case kindDone:
			return nil
		}
	}
}

// take records a row and publishes it.
func (n *Local) take(v row) (bulk.Row, error) {
	r := bulk.Row{Event: v.Event, Account: auth.ParseAccount("", v.Server), Issuer: v.Issuer, Since: time.Now()}
	if l := v.Login; l != nil {
		r.Login = &auth.Pending{
			Account: r.Account, ServerURL: v.ServerURL, Issuer: v.Issuer, Flow: auth.FlowCode,
			AuthorizeURL: l.AuthorizeURL, State: l.State, RedirectURI: l.RedirectURI, Created: r.Since, Expires: l.Expires,
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.rows[v.Server]
	switch {
	case old == nil && len(n.rows) >= limit.ForwardAccounts:
		return r, fmt.Errorf("%w: it tells of more than %d accounts", ErrMalformed, limit.ForwardAccounts)
	case r.Login != nil && n.known[r.Login.State] == nil && len(n.known) >= limit.ForwardStates:
		return r, fmt.Errorf("%w: it begins more than %d logins", ErrMalformed, limit.ForwardStates)
	case old == nil:
		n.order = append(n.order, v.Server)
	case old.Phase == r.Phase:
		r.Since = old.Since
	}
	n.rows[v.Server] = &r
	if r.Login != nil && n.known[r.Login.State] == nil {
		n.known[r.Login.State] = &verdict{}
	}
	n.bus.Publish(r.Event)
	return r, nil
}

// settle hands a verdict to the browsers that wait for it.
func (n *Local) settle(a answered) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.known[a.State]
	if v == nil {
		return
	}
	if a.Result == resultDone || a.Result == resultFailed {
		v.final = &a.Result
	}
	for _, c := range v.waiting {
		c <- a.Result // has room
	}
	v.waiting = nil
}

// hangUp releases everyone who waits for the remote side.
func (n *Local) hangUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.over)
	n.bus.Close()
}

// Rows says where every account stands, in the order in which they were heard of.
func (n *Local) Rows() []bulk.Row {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]bulk.Row, 0, len(n.order))
	for _, name := range n.order {
		out = append(out, *n.rows[name])
	}
	return out
}

// Subscribe returns a subscription to all steps from now on. The caller must Close it.
func (n *Local) Subscribe() *event.Subscription[bulk.Event] { return n.bus.Subscribe(0) }

// Answer carries what came back from a consent page to the remote side and waits for
// its verdict, an error as of [auth.Engine.Complete]. An answer to a login that the
// far side has not shown is not carried at all.
func (n *Local) Answer(ctx context.Context, cb auth.Callback) error {
	got := make(chan result, 1)
	n.mu.Lock()
	v := n.known[cb.State]
	var final *result
	full := false
	if v != nil {
		if final, full = v.final, len(v.waiting) >= limit.ForwardWaiting; final == nil && !full {
			v.waiting = append(v.waiting, got)
		}
	}
	n.mu.Unlock()
	switch {
	case v == nil:
		return auth.ErrUnknownState
	case final != nil:
		return final.err() // a browser asked twice
	case full:
		return auth.ErrBeingCompleted
	}
	defer n.leave(v, got)
	a := &answer{State: cb.State, Code: carried{cb.Code}, Error: cb.Error, Words: cb.Words}
	if cb.HasIss {
		a.Iss = &cb.Iss
	}
	if err := n.out.send(message{Kind: kindAnswer, Answer: a}); err != nil {
		return errors.Join(auth.ErrUnavailable, err)
	}
	timer := time.NewTimer(verdictLimit)
	defer timer.Stop()
	select {
	case r := <-got:
		return r.err()
	case <-n.over:
		select {
		case r := <-got: // it was the last thing that the remote side said
			return r.err()
		default:
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return auth.ErrUnavailable
}

// leave forgets a browser that waits no longer.
func (n *Local) leave(v *verdict, got chan result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v.waiting = slices.DeleteFunc(v.waiting, func(c chan result) bool { return c == got })
}

// Paste carries what a person pasted. It must name its login, as an address does.
func (n *Local) Paste(ctx context.Context, state, text string) (*auth.Login, error) {
	got, err := oauth.ParsePaste(text)
	if err != nil {
		return nil, err
	}
	if got.State == "" {
		if got.State = state; state == "" {
			return nil, fmt.Errorf("%w: a bare code does not say which login it is for; paste the whole address", auth.ErrBadPaste)
		}
	}
	return nil, n.Answer(ctx, got.Callback)
}
