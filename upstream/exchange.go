package upstream

import (
	"errors"
	"net/http"
	"sync"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// exchange is one request of ours that is in flight.
type exchange struct {
	id      int64
	version string // revision it is written in, "" for the handshake
	method  string
	body    []byte      // the whole message
	header  http.Header // Mcp-Method, Mcp-Name, Mcp-Param-*; nil where none
	token   []byte      // the caller's progress token, raw; nil when none
	notify  func(mcp.Message)
	respond mcp.Responder
	reply   chan *outcome // one place
	renewed bool          // it begins a session: one that is gone is not renewed for it
	asked   int           // requests of the server that x answers; guarded by inbound.mu
	wake    func()        // ends a wait elsewhere once the reply is there; may be nil
}

// end gives x its outcome. Whoever took x out of the router calls it, once.
func (x *exchange) end(o outcome) {
	x.reply <- &o
	if x.wake != nil {
		x.wake()
	}
}

// outcome ends an exchange: a response or the reason why none will come.
type outcome struct {
	msg mcp.Message
	err error
}

// deliver hands a notification that belongs to x to its caller. A progress token
// of ours becomes the caller's again.
func (x *exchange) deliver(m mcp.Message) {
	if x.notify == nil {
		return
	}
	if m.Method == mcp.MethodNotifyProgress && x.token != nil {
		m.Params = jsonx.Set(m.Params, mcp.MetaProgress, x.token)
		m.Raw = mcp.AppendNotification(nil, m.Method, m.Params)
	}
	x.notify(m)
}

// router finds the one that an incoming message is meant for. It is shared by all
// links of a Conn.
type router struct {
	mu      sync.Mutex // guards pending, closed
	pending pending
	closed  error // why, for those whose request may have been sent

	server    string
	onNotify  func(mcp.Message)
	onRequest mcp.Responder
	lost      func(reason string, m mcp.Message) // a message nobody waits for
}

func (r *router) add(x *exchange) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return unsent(r.server, r.closed)
	}
	r.pending.add(x)
	return nil
}

func (r *router) remove(id int64) {
	r.mu.Lock()
	r.pending.take(id)
	r.mu.Unlock()
}

func (r *router) take(id mcp.ID) *exchange {
	n, ok := id.Int()
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending.take(n)
}

// fail ends all exchanges in flight and refuses new ones, which have certainly not
// been sent.
func (r *router) fail(err error) {
	r.mu.Lock()
	if r.closed == nil {
		r.closed = err
	}
	ended := r.pending
	r.pending = pending{}
	r.mu.Unlock()
	for x := range ended.all() {
		x.end(outcome{err: err})
	}
}

// unsent is err for a request that was never written.
func unsent(server string, err error) error {
	var te *TransportError
	if errors.As(err, &te) {
		return &TransportError{Server: te.Server, Op: te.Op, Err: te.Err}
	}
	return &TransportError{Server: server, Op: "send", Err: err}
}

// reason returns why the connection was closed, or err when it was not.
func (r *router) reason(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return r.closed
	}
	return err
}

// failAll ends all exchanges in flight but keeps the connection open.
func (r *router) failAll(err error) {
	r.mu.Lock()
	ended := r.pending
	r.pending = pending{}
	r.mu.Unlock()
	for x := range ended.all() {
		x.end(outcome{err: err})
	}
}

func (r *router) inFlight() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending.len()
}

// response ends the exchange that m answers.
func (r *router) response(m mcp.Message) {
	if x := r.take(m.ID); x != nil {
		x.end(outcome{msg: m})
		return
	}
	r.lost("an answer to no request of ours", m)
}

// notification goes to the request it belongs to where that is known, else to the
// connection's handler. x is the exchange on whose stream it came, nil if none. A
// change of a list or a resource belongs to nobody but who listens for it, whatever
// stream a server chose for telling.
func (r *router) notification(x *exchange, m mcp.Message) {
	if x != nil && x.method != mcp.MethodListen && isChange(m.Method) {
		x = nil
	}
	if m.Method == mcp.MethodNotifyProgress {
		if x = r.byToken(m, x); x == nil {
			r.lost("progress for no request of ours", m)
			return
		}
	}
	if x == nil {
		x = r.bySubscription(m)
	}
	if x != nil && x.notify != nil {
		x.deliver(m)
		return
	}
	if r.onNotify != nil {
		r.onNotify(m)
	}
}

// isChange reports whether a notification tells of something that changed.
func isChange(method string) bool {
	switch method {
	case mcp.MethodNotifyTools, mcp.MethodNotifyPrompts, mcp.MethodNotifyRes, mcp.MethodNotifyUpdated:
		return true
	}
	return false
}

// bySubscription finds the listen request whose id m carries.
func (r *router) bySubscription(m mcp.Message) *exchange {
	raw, ok := jsonx.Path(m.Params, "_meta", mcp.MetaSubscription)
	if !ok {
		return nil
	}
	id, _ := mcp.RawID(raw)
	if s, isText := jsonx.Text(raw); isText {
		id, _ = mcp.RawID([]byte(s)) // the id of ours, as text
	}
	n, ok := id.Int()
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending.find(n)
}

// byToken finds the exchange whose progress token m carries: our token is the id.
func (r *router) byToken(m mcp.Message, x *exchange) *exchange {
	raw, _ := jsonx.Get(m.Params, mcp.MetaProgress)
	id, ok := mcp.RawID(raw)
	if !ok {
		return nil
	}
	n, ok := id.Int()
	if !ok {
		return nil
	}
	if x != nil {
		if x.id == n {
			return x
		}
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending.find(n)
}

// responder returns what answers a request of the server, nil when nothing does: the
// one caller it can belong to, else the connection's handler. x is the exchange on
// whose stream it came, nil if none; the exchange it belongs to is returned.
func (r *router) responder(x *exchange) (mcp.Responder, *exchange) {
	if x == nil {
		x = r.only()
	}
	if x != nil && x.respond != nil {
		return x.respond, x
	}
	return r.onRequest, nil
}

// only returns the single exchange that can answer, nil when there are more.
func (r *router) only() *exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found *exchange
	for x := range r.pending.all() {
		if x.respond == nil {
			continue
		}
		if found != nil {
			return nil
		}
		found = x
	}
	return found
}
