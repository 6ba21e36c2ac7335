package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/internal/limit"
)

// ErrDisconnected says that the local side went away. Logins that wait go on to wait.
var ErrDisconnected = errors.New("the other side of the callback forwarding has disconnected")

// answerLimit is how long the exchange of a code may take, also after the local side
// disconnected: a code that the user consented to is not thrown away.
const answerLimit = 100 * time.Second

// Remote is the side on which logins begin and end.
type Remote struct {
	// Hello is what the local side is told first. Serve fills in the protocol.
	Hello Hello
	// Begin makes ready what the order asks for. Serve closes the driver.
	Begin func(ctx context.Context, o Order) (*bulk.Driver, []bulk.Target, error)
	// Connected hears of every account that was logged in. Nil does not.
	Connected func(ctx context.Context, a auth.Account)
}

// Serve talks to the local side until nothing is left to wait for (nil), it leaves
// ([ErrDisconnected]), or ctx ends. A pending read of in is then abandoned.
func (f *Remote) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	w := &writer{mark: fromRemote, w: out}
	f.Hello.Protocol = Protocol
	if err := w.send(message{Kind: kindHello, Hello: &f.Hello}); err != nil {
		return ErrDisconnected
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inbox := receive(ctx, in)
	var order *Order
	for order == nil {
		select {
		case m, open := <-inbox:
			if !open {
				return ErrDisconnected
			}
			order = m.Order
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	d, targets, err := f.begin(ctx, *order)
	if err != nil {
		Refuse(out, err)
		return err
	}
	defer func() { _ = d.Close() }() // logins that wait go on to wait in the store
	return f.carry(ctx, newTalk(w, d, inbox), targets, *order)
}

func (f *Remote) begin(ctx context.Context, o Order) (*bulk.Driver, []bulk.Target, error) {
	if o.Protocol != Protocol {
		return nil, nil, versionError(f.Hello.Usher, o.Usher)
	}
	return f.Begin(ctx, o)
}

// Refuse tells the local side why there is nothing to talk about, before or instead
// of a Serve.
func Refuse(out io.Writer, err error) {
	fault := &Fault{Message: err.Error()}
	var next interface{ Hint() string }
	if errors.As(err, &next) {
		fault.Next = next.Hint()
	}
	w := &writer{mark: fromRemote, w: out}
	_ = w.send(message{Kind: kindFault, Fault: fault}) // nobody is left to tell otherwise
}

// receive reads messages until the local side leaves, or sends what cannot be read.
func receive(ctx context.Context, in io.Reader) <-chan message {
	out := make(chan message)
	go func() {
		defer close(out)
		for r := newReader(in, fromLocal, nil); ; {
			m, err := r.next()
			if err != nil {
				return
			}
			select {
			case out <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// talk is one conversation after its order.
type talk struct {
	w     *writer
	d     *bulk.Driver
	inbox <-chan message
	trade func(context.Context, answer) // takes one answer in
	slots chan struct{}                 // full while as many answers as may be are taken in

	mu   sync.Mutex // guards sent
	sent map[string]row
}

func newTalk(w *writer, d *bulk.Driver, inbox <-chan message) *talk {
	t := &talk{w: w, d: d, inbox: inbox, slots: make(chan struct{}, limit.ForwardAnswers), sent: map[string]row{}}
	t.trade = t.answer
	return t
}

// carry runs the logins, tells of every step and takes answers in.
func (f *Remote) carry(ctx context.Context, t *talk, targets []bulk.Target, o Order) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var news, answers sync.WaitGroup
	sub := t.d.Subscribe()
	news.Go(func() {
		for e, lost := range sub.All(ctx) {
			t.tell(e, lost)
		}
	})
	over := make(chan struct{})
	news.Go(func() {
		defer close(over)
		t.d.Prepare(ctx, targets, o.Mode, bulk.Redirect{Courier: o.Redirects}, nil)
		_ = t.w.send(message{Kind: kindPrepared}) // one who left is noticed by reading
		_ = t.d.Wait(ctx)
	})
	err := t.listen(ctx, over, &answers)
	answers.Wait() // a code on its way to becoming a login is worth the time
	cancel()
	news.Wait()
	sub.Close()
	for _, r := range t.d.Rows() {
		t.send(r)
		if r.Phase == bulk.PhaseConnected && f.Connected != nil {
			f.Connected(context.WithoutCancel(ctx), r.Account)
		}
	}
	if err == nil {
		err = t.w.send(message{Kind: kindDone})
	}
	return err
}

// listen takes answers in until everything is over.
func (t *talk) listen(ctx context.Context, over <-chan struct{}, answers *sync.WaitGroup) error {
	for {
		select {
		case <-over:
			return ctx.Err()
		case <-ctx.Done():
			return ctx.Err()
		case m, open := <-t.inbox:
			if !open {
				return ErrDisconnected
			}
			if m.Kind != kindAnswer {
				continue
			}
			select {
			case t.slots <- struct{}{}: // while there is none, nothing more is read
			case <-ctx.Done():
				return ctx.Err()
			}
			answers.Go(func() {
				defer func() { <-t.slots }()
				t.trade(ctx, *m.Answer)
			})
		}
	}
}

func (t *talk) answer(ctx context.Context, a answer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer cancel()
	cb := auth.Callback{State: a.State, Code: a.Code.Secret, Error: a.Error, Words: a.Words}
	if a.Iss != nil {
		cb.Iss, cb.HasIss = *a.Iss, true
	}
	_, err := t.d.Answer(ctx, cb)
	_ = t.w.send(message{Kind: kindAnswered, Answered: &answered{State: a.State, Result: resultOf(err)}}) // as above
}

// tell sends one step. After a loss all rows are sent again.
func (t *talk) tell(e bulk.Event, lost int) {
	for _, r := range t.d.Rows() {
		if r.Server == e.Server {
			r.Event = e
			if e.Phase != bulk.PhaseAwaiting && e.Phase != bulk.PhaseExchanging {
				r.Login = nil
			}
		} else if lost == 0 {
			continue
		}
		t.send(r)
	}
}

// send tells of a row, unless that is what was told last.
func (t *talk) send(r bulk.Row) {
	v := row{Event: r.Event, Issuer: r.Issuer}
	if p := r.Login; p != nil {
		v.Login = &login{AuthorizeURL: p.AuthorizeURL, State: p.State, RedirectURI: p.RedirectURI, Expires: p.Expires}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if reflect.DeepEqual(t.sent[r.Server], v) {
		return
	}
	t.sent[r.Server] = v
	_ = t.w.send(message{Kind: kindRow, Row: &v}) // one who left is noticed by reading
}

// versionError names both sides, since only the person knows which one to update.
func versionError(far, near string) error {
	return fmt.Errorf("incompatible usher versions: the other machine has %s, this one has %s; update the older one", far, near)
}
