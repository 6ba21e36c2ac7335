package suspend

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/usher-mcp/usher/gateway/internal/lifetime"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// Call is an in-flight request that may outlive the HTTP request that brought it: a
// server of the legacy protocol asked something, the client was told with
// `input_required`, and the call waits for the retry.
type Call struct {
	ID        string
	principal string
	Subject   string
	caps      []byte
	Cancel    context.CancelCauseFunc
	Asked     chan struct{} // one place: there are questions
	Done      chan struct{} // closed when result and err are set
	Result    []byte
	Err       error
	started   time.Time
	held      *stream.ByteQuota
	room      func() bool // whether one more call may be suspended
	expiry    *time.Timer // while it is suspended; guarded by the store

	mu        sync.Mutex    // guards what follows
	use       *lifetime.Use // ends it with the token of the request that waits for it, or was the last to
	over      bool          // nothing can end it any more
	out       stream.Sender // of the request that waits for it now; nil while it is suspended
	token     []byte        // that request's progress token
	level     string
	open      []*question
	size      int // of their params
	questions int
	round     int
}

// New returns a call of principal whose client has the capabilities caps. subject
// names the request that a retry must fit, held counts the bytes of questions, and cancel
// ends the call. room reports whether one more call may be suspended.
func New(principal, subject string, caps []byte, held *stream.ByteQuota, room func() bool, cancel context.CancelCauseFunc) *Call {
	return &Call{
		ID: rand.Text(), principal: principal, Subject: subject, caps: caps, Cancel: cancel, held: held, room: room,
		Asked: make(chan struct{}, 1), Done: make(chan struct{}), started: time.Now(),
	}
}

// Finish sets what the call ended with.
func (c *Call) Finish(result []byte, err error) {
	c.Result, c.Err = result, err
	close(c.Done)
}

// question is something a server wants to know.
type question struct {
	key    string
	method string
	params []byte
	answer chan []byte // one place
}

// Why a call is cancelled.
var (
	ErrClientLeft = errors.New("the agent left")
	ErrExpired    = errors.New("nobody answered in time")
)

// Unbind takes the call off what ends with a token.
func (c *Call) Unbind() {
	c.mu.Lock()
	u := c.use
	c.use, c.over = nil, true
	c.mu.Unlock()
	u.Done()
}

// Attach makes out hear of the call, until it is suspended: progress with token, and log
// messages from level on.
func (c *Call) Attach(out stream.Sender, token []byte, level string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out, c.token, c.level = out, token, level
}

// EndWith makes u the use that ends the call: the one of the request that waits for it.
func (c *Call) EndWith(u *lifetime.Use) {
	c.mu.Lock()
	before := c.use
	if c.over {
		before = u
	} else {
		c.use = u
	}
	c.mu.Unlock()
	before.Done()
}

// gatherFor is how long a call that has asked may go on asking: what a server asks
// side by side is put to the agent in one answer.
const gatherFor = 25 * time.Millisecond

// Gather waits for more questions, until the call is done or ctx ends.
func (c *Call) Gather(ctx context.Context) {
	t := time.NewTimer(gatherFor)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.Done:
	case <-ctx.Done():
	}
}

// Notify forwards a notification of the call, with the progress token of the client
// that waits for it now.
func (c *Call) Notify(m mcp.Message) {
	c.mu.Lock()
	out, token, level := c.out, c.token, c.level
	c.mu.Unlock()
	switch {
	case out == nil:
	case m.Method == mcp.MethodNotifyMessage && stream.LevelReached(level, m.Params):
		out.Send(stream.Raw(m))
	case m.Method == mcp.MethodNotifyProgress && token != nil:
		if was, _ := jsonx.Get(m.Params, mcp.MetaProgress); string(was) == string(token) {
			out.Send(stream.Raw(m))
			return
		}
		out.Send(mcp.AppendNotification(nil, m.Method, jsonx.Set(m.Params, mcp.MetaProgress, token)))
	}
}

// Ask takes in a question of the server and waits for the agent's answer.
func (c *Call) Ask(ctx context.Context, method string, params []byte) ([]byte, *mcp.Error) {
	if bad := CanAnswer(c.caps, method, params); bad != nil {
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
func (c *Call) addQuestion(method string, params []byte) (*question, *mcp.Error) {
	room := c.room() // not under mu: the store locks calls
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.open) >= limit.CallQuestions, c.questions >= limit.CallQuestionsTotal:
		return nil, mcp.Errorf(mcp.CodeInternal, "the server asks too many questions during one call")
	case c.size+len(params) > limit.CallQuestionBytes:
		return nil, mcp.Errorf(mcp.CodeInternal, "the questions of the server are too large")
	case c.questions == 0 && !room, !c.held.Take(c.principal, len(params)):
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
func (c *Call) letGo(qn *question) {
	c.size -= len(qn.params)
	c.held.Give(c.principal, len(qn.params))
}

func (c *Call) poke() {
	select {
	case c.Asked <- struct{}{}:
	default:
	}
}

func (c *Call) drop(qn *question) {
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

// Suspend detaches the call from its request and returns its open questions as the
// members of `inputRequests`, with the number of this round. False: there is no question
// any more.
func (c *Call) Suspend() (requests []byte, round int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == 0 {
		return nil, 0, false
	}
	c.out, c.token = nil, nil
	c.round++
	for i, qn := range c.open {
		if i > 0 {
			requests = append(requests, ',')
		}
		requests = jsonx.AppendText(requests, qn.key)
		requests = jsonx.AppendText(append(requests, `:{"method":`...), qn.method)
		requests = append(append(append(requests, `,"params":`...), qn.params...), '}')
	}
	return requests, c.round, true
}

// Answer gives the call the answers of a retry. Questions without one are asked again.
func (c *Call) Answer(responses []byte) {
	c.mu.Lock()
	var left []*question
	for _, qn := range c.open {
		if r, ok := jsonx.Get(responses, qn.key); ok && jsonx.TypeOf(r) == "object" {
			qn.answer <- r
			c.letGo(qn)
		} else {
			left = append(left, qn)
		}
	}
	c.open = left
	c.mu.Unlock()
	if len(left) > 0 {
		c.poke()
	}
}
