package upstream

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/ending"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/process"
)

// Options steer a connection. The zero value works.
type Options struct {
	// Version is the revision remembered from an earlier connection to the same
	// server. Empty means to probe. A wrong one is noticed and corrected.
	Version string
	// ProbeTimeout is how long a server may leave the probe for the stateless protocol
	// unanswered before the legacy handshake is tried. Default 2s.
	ProbeTimeout time.Duration
	// ClientName and ClientVersion say who we are. Default "usher".
	ClientName, ClientVersion string
	// Capabilities is the raw JSON object of client capabilities. Default {}.
	Capabilities []byte
	// OnNotification hears notifications that belong to no single request. It must
	// not block.
	OnNotification func(mcp.Message)
	// OnRequest answers requests of the server that belong to no single request of
	// ours. Without it they are refused.
	OnRequest mcp.Responder
	// Greet returns the first requests of a new session of the legacy protocol, whose
	// answers are ignored: the log level, subscriptions. It is called again whenever
	// the server has lost the session.
	Greet func() []mcp.Message
	// Authorize may add credentials to an HTTP request before it is sent.
	Authorize func(*http.Request) error
	// Refused hears that the server refused what is not a caller's request: a stream
	// that is opened, or an answer that is picked up again. Nil means to try once more.
	// Without it, or with an error, the stream stays closed and the answer is lost.
	Refused func(context.Context, *UnauthorizedError) error
	// Transport carries HTTP. Default: one of its own, closed with the Conn.
	Transport http.RoundTripper
	// Executable is re-executed as the guard around a stdio child, see
	// process.Options.Shim. Empty: no guard.
	Executable string
	// Spare is a guard that was started ahead, see process.Options.Spare. Default: none.
	Spare *process.Spare
	// Stderr keeps a stdio child's words across restarts. Default: a new ring.
	Stderr *process.Ring
	// Grace and Kill are the steps of the stop ladder, see process.Options.
	Grace, Kill time.Duration
	// Pace bounds how fast the server is listened to, across its connections.
	// Default: one of its own.
	Pace *Pace
	// AnswerTimeout is how long the server may take to accept the answer to a request
	// of its own before the connection is closed. Default limit.ServerAnswerTime.
	AnswerTimeout time.Duration
	// Log hears warnings about the peer. Default: discard.
	Log *slog.Logger
	// OneStart says that a child that exits when it is asked which protocol it speaks
	// is not started again within the same dial.
	OneStart bool
	// OnStart is called before each start of a child. Nil: nothing is.
	OnStart func()
	// Tracer makes a span of every request and names it to the server. Nil: none,
	// and a trace context of the caller passes as it is.
	Tracer trace.Tracer
}

// Conn is a connection to one server. All methods may be used concurrently. What every
// request touches stands together: of many servers, little is in a processor's cache.
type Conn struct {
	link    link
	version string
	server  *config.Server // shared with the caller of Dial
	limit   int64          // of one message in bytes
	nextID  atomic.Int64
	tools   headerTable
	over    context.Context // see Gone
	router  router
	opt     Options

	log     *slog.Logger
	info    ServerInfo
	stop    context.CancelFunc // ends listeners
	life    context.Context
	end     func() // ends over
	wg      sync.WaitGroup
	cancels background // cancellations being sent, each bounded by cancelTimeout
	closing background // of the link, after a failure
	inbound inbound
	counts  counters
}

// link carries messages to one server.
type link interface {
	// roundTrip sends the exchange's message and waits for its response.
	roundTrip(ctx context.Context, x *exchange) (mcp.Message, error)
	// send delivers a message that has no response: a notification or an answer.
	send(ctx context.Context, body []byte) error
	// cancel tells the server that nobody waits for x any more.
	cancel(x *exchange, reason string)
	// close ends the connection and waits for its end. Whenever and however that is
	// reached, the link calls Conn.end.
	close() error
}

// ServerInfo is what a server said about itself, raw. Its words are not to be
// trusted for decisions.
type ServerInfo struct {
	Version      string // negotiated revision
	Info         []byte // name, version, …; nil when it did not say
	Capabilities []byte
	Instructions string
	Raw          []byte // the whole InitializeResult or DiscoverResult
}

// counters of what a peer did wrong; read by Stats.
type counters struct{ garbage, lost, tooLarge atomic.Int64 }

// Stats counts what went wrong on a connection without ending it.
type Stats struct {
	Garbage  int64 // lines or messages that were no JSON-RPC
	Lost     int64 // answers and progress that nobody waited for
	TooLarge int64 // messages above the limit
}

// Stats returns the counts so far.
func (c *Conn) Stats() Stats {
	return Stats{Garbage: c.counts.garbage.Load(), Lost: c.counts.lost.Load(), TooLarge: c.counts.tooLarge.Load()}
}

// Version is the negotiated protocol revision.
func (c *Conn) Version() string { return c.version }

// Info is what the server said about itself.
func (c *Conn) Info() ServerInfo { return c.info }

// Gone ends when the connection is gone: the child died, the server exceeded a limit, or
// Close was called; its cause says which. An HTTP connection of the stateless protocol is
// never gone by itself. It is a context, so that waiting for the end of a thousand connections
// takes no goroutines.
func (c *Conn) Gone() context.Context { return c.over }

// InFlight is how many requests wait for an answer.
func (c *Conn) InFlight() int { return c.router.inFlight() }

// Close ends the connection: the session is deleted, the child stopped with all
// it started. It is idempotent and returns when everything is gone.
func (c *Conn) Close() error {
	c.router.fail(&TransportError{Server: c.server.Name, Op: "wait", Written: true, Err: ErrClosed})
	c.cancels.close() // what the server was to be told is on its way out
	c.stop()
	c.closing.close()
	err := c.link.close()
	c.inbound.run.close()
	c.wg.Wait()
	return err
}

// Do sends a request and returns the raw result. The error is a *mcp.Error when
// the server answered with one: an answer like any other. When ctx ends first the
// server is told to stop.
func (c *Conn) Do(ctx context.Context, req mcp.Request) ([]byte, error) {
	return c.do(ctx, req, c.version)
}

// do sends a request in the form of the given revision; "" stands for the
// handshake, which carries no sign of any.
func (c *Conn) do(ctx context.Context, req mcp.Request, version string) (result []byte, err error) {
	if c.opt.Tracer != nil && version != "" {
		traced, span := c.trace(ctx, &req, version)
		defer func() { endSpan(span, err) }()
		ctx = traced
	}
	x, err := c.exchange(req, version)
	if err != nil {
		return nil, err
	}
	return c.perform(ctx, x)
}

// perform sends a prepared exchange and waits for its outcome.
func (c *Conn) perform(ctx context.Context, x *exchange) ([]byte, error) {
	wait := ctx
	if _, posts := c.link.(*httpLink); posts {
		// The POST ends with the exchange: when the connection is closed, or the
		// answer comes on the session's own stream.
		e := ending.Under(ctx)
		defer e.End(nil)
		wait, x.wake = &e, func() { e.End(nil) }
	}
	if err := c.router.add(x); err != nil {
		return nil, err
	}
	defer c.router.remove(x.id)
	m, err := c.link.roundTrip(wait, x)
	if err != nil {
		if ctx.Err() != nil {
			c.cancel(x, context.Cause(ctx))
			err = ended(ctx, c.server.Name, x.method, err)
		} else if c.life.Err() != nil {
			err = c.router.reason(err)
		}
		return nil, err
	}
	if m.Error != nil {
		return nil, mcp.ParseError(m.Error)
	}
	return m.Result, nil
}

// exchange prepares the message: `_meta` for the era, headers, progress token.
func (c *Conn) exchange(req mcp.Request, version string) (*exchange, error) {
	p, werr := req.ReadParams()
	if werr != nil {
		return nil, werr
	}
	x := &exchange{
		id: c.nextID.Add(1), version: version, method: req.Method, notify: req.OnNotification, respond: req.OnRequest,
		reply: make(chan *outcome, 1),
	}
	m := readMeta(p.Meta)
	edits := c.metaEdits(p.Meta, &m, version)
	if m.token != nil {
		x.token = m.token
		edits = append(edits, jsonx.Edit{Key: mcp.MetaProgress, Value: strconv.AppendInt(nil, x.id, 10)})
	}
	params := wire.EditMeta(req.Params, edits...)
	x.body = mcp.AppendRequest(make([]byte, 0, len(params)+96), mcp.IntID(x.id), req.Method, params)
	if mcp.Stateless(version) && c.server.Transport != config.TransportStdio {
		x.header = c.requestHeader(req.Method, &p)
	}
	return x, nil
}

// sentMeta is what a caller's `_meta` says that concerns the connection.
type sentMeta struct {
	version, token []byte // raw, nil when absent
	info, caps     bool
}

func readMeta(meta []byte) sentMeta {
	var s sentMeta
	for m := jsonx.Object(meta); m.Next(); {
		switch string(m.Key) {
		case mcp.MetaVersion:
			s.version = m.Value
		case mcp.MetaClientInfo:
			s.info = true
		case mcp.MetaClientCaps:
			s.caps = true
		case mcp.MetaProgress:
			s.token = m.Value
		}
	}
	return s
}

// metaEdits are the changes that make `_meta` fit the server's era, none where it
// fits. A caller's own client info and capabilities stand: a gateway speaks for its
// agent.
func (c *Conn) metaEdits(meta []byte, sent *sentMeta, version string) []jsonx.Edit {
	if !mcp.Stateless(version) {
		if meta == nil {
			return nil
		}
		return []jsonx.Edit{{Key: mcp.MetaVersion}, {Key: mcp.MetaClientInfo}, {Key: mcp.MetaClientCaps}, {Key: mcp.MetaLogLevel}}
	}
	var edits []jsonx.Edit
	if said, ok := jsonx.Text(sent.version); !ok || said != version {
		edits = append(edits, jsonx.Edit{Key: mcp.MetaVersion, Value: jsonx.Quote(version)})
	}
	if !sent.info {
		edits = append(edits, jsonx.Edit{Key: mcp.MetaClientInfo, Value: c.opt.clientInfo()})
	}
	if !sent.caps {
		edits = append(edits, jsonx.Edit{Key: mcp.MetaClientCaps, Value: c.opt.Capabilities})
	}
	return edits
}

func (o *Options) clientInfo() []byte {
	out := jsonx.AppendText([]byte(`{"name":`), o.ClientName)
	out = jsonx.AppendText(append(out, `,"version":`...), o.ClientVersion)
	return append(out, '}')
}

// Notify sends a notification.
func (c *Conn) Notify(ctx context.Context, method string, params []byte) error {
	if l, bounded := c.link.(interface {
		acquire(context.Context) error
		release()
	}); bounded {
		if err := l.acquire(ctx); err != nil {
			return err
		}
		defer l.release()
	}
	return c.link.send(ctx, mcp.AppendNotification(nil, method, params))
}

// cancel tells the server in the background: the caller has already left.
func (c *Conn) cancel(x *exchange, cause error) {
	if x.method == mcp.MethodInitialize || x.method == mcp.MethodDiscover {
		return // the first must not be cancelled, the second may be unknown to the peer
	}
	reason := "the caller cancelled"
	if errors.Is(cause, context.DeadlineExceeded) {
		reason = "the deadline passed"
	}
	c.cancels.start(func() { c.link.cancel(x, reason) }) // best effort: too many at once are dropped
}

// cancelled is the notification that takes a request back.
func cancelled(x *exchange, reason string) []byte {
	params := strconv.AppendInt([]byte(`{"requestId":`), x.id, 10)
	params = jsonx.AppendText(append(params, `,"reason":`...), reason)
	return mcp.AppendNotification(nil, mcp.MethodNotifyCancel, append(params, '}'))
}

// cancelTimeout bounds how long telling the server may take.
const cancelTimeout = 2 * time.Second
