package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// call is a request under way that may outlive the HTTP request that brought it: a
// server of the older era asked something, the agent was told with
// `input_required`, and the call waits for the retry.
type call struct {
	id        string
	principal string
	subject   string
	caps      []byte
	cancel    context.CancelCauseFunc
	asked     chan struct{} // one place: there are questions
	done      chan struct{} // closed when result and err are set
	result    []byte
	err       error
	begun     time.Time
	held      *heldBytes
	room      func() bool // whether one more call may be parked
	expiry    *time.Timer // while it is parked; guarded by parking

	mu        sync.Mutex // guards what follows
	use       *use       // ends it with the token of the request that waits for it, or was the last to
	over      bool       // nothing can end it any more
	out       outlet     // of the request that waits for it now; nil while it is parked
	token     []byte     // that request's progress token
	level     string
	open      []*question
	size      int // of their params
	questions int
	round     int
}

// question is something a server wants to know.
type question struct {
	key    string
	method string
	params []byte
	answer chan []byte // one place
}

var (
	errLeft    = errors.New("the agent left")
	errExpired = errors.New("nobody answered in time")
)

// runParkable runs a request apart from the one that brought it.
func (g *Gateway) runParkable(ctx context.Context, q *request) answer {
	c := &call{
		id: rand.Text(), principal: q.agent.Principal, subject: q.subject(), caps: q.agent.Capabilities,
		asked: make(chan struct{}, 1), done: make(chan struct{}), begun: time.Now(), held: &g.held,
		room: func() bool { return g.parked.room(q.agent.Principal) },
	}
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c.cancel = cancel
	c.attach(q)
	g.lasts(c, lifetimeOf(ctx))
	if !g.spawn(func() {
		defer context.AfterFunc(g.life, func() { cancel(errLeft) })()
		defer cancel(nil)
		defer c.finished()
		req := q.Request
		req.OnNotification, req.OnRequest = c.notify, c.ask
		c.result, c.err = q.end.view.Do(run, q.agent, req)
		close(c.done)
	}) {
		cancel(nil)
		c.finished()
		return answer{none: true}
	}
	return g.attend(ctx, q, c)
}

// lasts makes the call end with the token of the request that waits for it now.
func (g *Gateway) lasts(c *call, life lifetime) {
	if life.all == nil {
		return
	}
	u := life.hold(func(cause error) {
		c.cancel(cause)
		g.parked.drop(c)
	})
	c.mu.Lock()
	before := c.use
	if c.over {
		before = u
	} else {
		c.use = u
	}
	c.mu.Unlock()
	before.done()
}

// finished takes the call off what ends with a token.
func (c *call) finished() {
	c.mu.Lock()
	u := c.use
	c.use, c.over = nil, true
	c.mu.Unlock()
	u.done()
}

// attach makes q the request that hears of the call.
func (c *call) attach(q *request) {
	token, _ := jsonx.Get(q.p.Meta, mcp.MetaProgress)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out, c.token, c.level = q.out, token, q.level
}

// attend waits for the call to end or to ask, on behalf of q.
func (g *Gateway) attend(ctx context.Context, q *request, c *call) answer {
	for {
		select {
		case <-c.done:
			return g.settle(ctx, q, c.result, c.err)
		case <-c.asked:
			c.gather(ctx)
			if a, ok := g.park(q, c); ok {
				return a
			}
		case <-ctx.Done():
			c.cancel(errLeft) // the agent left, and with it the reason for the call
			return answer{none: true}
		}
	}
}

// gatherFor is how long a call that has asked may go on asking: what a server asks
// side by side is put to the agent in one answer.
const gatherFor = 25 * time.Millisecond

func (c *call) gather(ctx context.Context) {
	t := time.NewTimer(gatherFor)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.done:
	case <-ctx.Done():
	}
}

// notify passes on what belongs to the call, with the token of whoever waits now.
func (c *call) notify(m mcp.Message) {
	c.mu.Lock()
	out, token, level := c.out, c.token, c.level
	c.mu.Unlock()
	switch {
	case out == nil:
	case m.Method == mcp.MethodNotifyMessage && loud(level, m.Params):
		out.send(raw(m))
	case m.Method == mcp.MethodNotifyProgress && token != nil:
		if was, _ := jsonx.Get(m.Params, mcp.MetaProgress); string(was) == string(token) {
			out.send(raw(m))
			return
		}
		out.send(mcp.AppendNotification(nil, m.Method, jsonx.Set(m.Params, mcp.MetaProgress, token)))
	}
}

// ask takes in a question of the server and waits for the agent's answer.
func (c *call) ask(ctx context.Context, method string, params []byte) ([]byte, *mcp.Error) {
	if bad := canAnswer(c.caps, method, params); bad != nil {
		return nil, bad
	}
	if jsonx.TypeOf(params) != "object" {
		params = []byte("{}")
	}
	qn, bad := c.addQuestion(method, params)
	if bad != nil {
		return nil, bad
	}
	c.poke()
	select {
	case result := <-qn.answer:
		return result, nil
	case <-ctx.Done():
		c.drop(qn)
		return nil, mcp.Errorf(mcp.CodeInternal, "%v", context.Cause(ctx))
	}
}

// addQuestion holds a question until it is answered, if it is within the limits.
func (c *call) addQuestion(method string, params []byte) (*question, *mcp.Error) {
	room := c.room() // not under mu: parking locks calls
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.open) >= limit.CallQuestions, c.questions >= limit.CallQuestionsTotal:
		return nil, mcp.Errorf(mcp.CodeInternal, "the server asks too many questions during one call")
	case c.size+len(params) > limit.CallQuestionBytes:
		return nil, mcp.Errorf(mcp.CodeInternal, "the questions of the server are too large")
	case c.questions == 0 && !room, !c.held.take(c.principal, len(params)):
		return nil, mcp.Errorf(mcp.CodeInternal, "too many calls wait for an answer of their agent")
	}
	c.questions++
	c.size += len(params)
	qn := &question{
		key: "q" + strconv.Itoa(c.questions), method: method, answer: make(chan []byte, 1),
		params: bytes.Clone(params), // without the rest of the message
	}
	c.open = append(c.open, qn)
	return qn, nil
}

// letGo no longer holds a question; it needs mu.
func (c *call) letGo(qn *question) {
	c.size -= len(qn.params)
	c.held.give(c.principal, len(qn.params))
}

func (c *call) poke() {
	select {
	case c.asked <- struct{}{}:
	default:
	}
}

func (c *call) drop(qn *question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, o := range c.open {
		if o == qn {
			c.open = append(c.open[:i:i], c.open[i+1:]...)
			c.letGo(qn)
			return
		}
	}
}

// park puts the call aside and tells the agent what the server asks. False: there
// is no question any more.
func (g *Gateway) park(q *request, c *call) (answer, bool) {
	c.mu.Lock()
	if len(c.open) == 0 {
		c.mu.Unlock()
		return answer{}, false
	}
	c.out, c.token = nil, nil
	c.round++
	st := state{Kind: stateParked, Call: c.id, Round: c.round, Peer: g.opt.Peer, Request: c.subject}
	out := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, qn := range c.open {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsonx.AppendText(out, qn.key)
		out = jsonx.AppendText(append(out, `:{"method":`...), qn.method)
		out = append(append(append(out, `,"params":`...), qn.params...), '}')
	}
	c.mu.Unlock()
	if !g.parked.add(c) {
		c.cancel(errExpired)
		return failure(mcp.CodeInternal, "too many calls wait for an answer of their agent"), true
	}
	g.count.parked.Add(1)
	out = append(out, `},"requestState":`...)
	out = jsonx.AppendText(out, g.seal.seal(st, owner(q.agent), g.opt.ParkTime))
	return answer{result: append(out, '}')}, true
}

// resume wakes the call that a retry is about and gives it the answers.
func (g *Gateway) resume(ctx context.Context, q *request, st state) answer {
	c := g.parked.take(st)
	if c == nil {
		return failure(mcp.CodeInvalidParams, "%v", errBadState)
	}
	g.count.resumed.Add(1)
	c.attach(q)
	g.lasts(c, lifetimeOf(ctx))
	responses := member(q.Params, "inputResponses")
	c.mu.Lock()
	var left []*question
	for _, qn := range c.open {
		if r, ok := jsonx.Get(responses, qn.key); ok && jsonx.TypeOf(r) == "object" {
			qn.answer <- r
			c.letGo(qn)
		} else {
			left = append(left, qn) // to be asked again
		}
	}
	c.open = left
	c.mu.Unlock()
	if len(left) > 0 {
		c.poke()
	}
	return g.attend(ctx, q, c)
}
