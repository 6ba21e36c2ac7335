package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// DefaultProbeTimeout is the timeout of the probe for the stateless protocol. A server
// that does not answer in time is offered the legacy handshake as well, and the first
// valid answer decides.
const DefaultProbeTimeout = 2 * time.Second

// Dial connects to the server that srv describes; its placeholders must be
// resolved, and it must not change any more. ctx bounds the connection's making, not
// its life.
func Dial(ctx context.Context, srv *config.Server, opt *Options) (*Conn, error) {
	o := withDefaults(opt)
	var c *Conn
	var err error
	switch srv.Transport {
	case config.TransportStdio:
		c, err = dialStdio(ctx, srv, o)
	case config.TransportHTTP:
		c, err = dialHTTP(ctx, srv, o)
	case config.TransportSSE:
		c, err = dialOldSSE(ctx, srv, o)
	default:
		err = fmt.Errorf("%s: unknown transport %q", srv.Name, srv.Transport)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func withDefaults(opt *Options) Options {
	var o Options
	if opt != nil {
		o = *opt
	}
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, DefaultProbeTimeout)
	o.ClientName = cmp.Or(o.ClientName, "usher")
	o.ClientVersion = cmp.Or(o.ClientVersion, "dev")
	if o.Capabilities == nil {
		o.Capabilities = []byte("{}")
	}
	o.AnswerTimeout = cmp.Or(o.AnswerTimeout, limit.ServerAnswerTime)
	if o.Pace == nil {
		o.Pace = NewPace()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func newConn(srv *config.Server, opt Options) *Conn {
	c := &Conn{server: srv, limit: srv.MaxMessageBytes, opt: opt, log: opt.Log.With("server", srv.Name)}
	if c.limit <= 0 {
		c.limit = config.DefaultMaxMessageBytes
	}
	c.life, c.stop = context.WithCancel(context.Background())
	var over context.CancelCauseFunc
	c.over, over = context.WithCancelCause(context.Background())
	c.end = func() { over(c.router.reason(context.Canceled)) }
	c.inbound.c = c
	c.cancels.max = limit.ServerCancels
	c.router = router{
		server: srv.Name, onNotify: opt.OnNotification, onRequest: opt.OnRequest, lost: c.lost,
	}
	return c
}

func (c *Conn) lost(reason string, m mcp.Message) {
	c.stray()
	n := c.counts.lost.Add(1)
	if n == 1 {
		c.log.Warn(reason, "id", m.ID.String(), "method", m.Method)
	}
	if n == limit.ServerUnknownAnswers {
		c.fail(&ProtocolError{Server: c.server.Name, Msg: "it sent 1,000 answers to requests that were never made", Err: ErrLimit})
	}
}

// fail ends the connection because of something the server did.
func (c *Conn) fail(err error) {
	c.log.Warn("the connection is closed", "error", err)
	c.router.fail(err)
	c.stop()
	c.closing.start(func() { _ = c.link.close() }) // the failure is already reported
}

// garbage notes text that is no JSON-RPC: many servers print banners.
func (c *Conn) garbage(line []byte, err error) {
	c.stray()
	if c.counts.garbage.Add(1) == 1 {
		c.log.Warn("skipped output that is not an MCP message", "text", fmt.Sprintf("%.120q", line), "why", err)
	}
}

// tooLarge ends the call that an oversized message answers, or all calls when it
// cannot be told which. A question or notification of the server ends none.
func (c *Conn) tooLarge(prefix []byte) {
	c.counts.tooLarge.Add(1)
	id, kind := mcp.Peek(prefix)
	if kind == mcp.KindRequest || kind == mcp.KindNotification {
		return
	}
	err := &TooLargeError{Server: c.server.Name, Limit: c.limit}
	if !id.Present() {
		c.router.failAll(err)
		return
	}
	if x := c.router.take(id); x != nil {
		x.end(outcome{err: err})
	}
}

func dialStdio(ctx context.Context, srv *config.Server, opt Options) (*Conn, error) {
	c, err := startStdio(ctx, srv, opt)
	if err == nil || ctx.Err() != nil || opt.OneStart || !errors.Is(err, errDiedOnProbe) {
		return c, err
	}
	// Some older servers exit on a request they do not know. A fresh one gets the
	// handshake it expects.
	opt.Version = mcp.LatestLegacy
	return startStdio(ctx, srv, opt)
}

func startStdio(ctx context.Context, srv *config.Server, opt Options) (*Conn, error) {
	c := newConn(srv, opt)
	if err := startStdioLink(ctx, c); err != nil {
		c.stop()
		return nil, err
	}
	if err := c.negotiate(ctx); err != nil {
		_ = c.Close() // the negotiation's error is the one to report
		return nil, err
	}
	return c, nil
}

func dialHTTP(ctx context.Context, srv *config.Server, opt Options) (*Conn, error) {
	c := newConn(srv, opt)
	c.link = newHTTPLink(c)
	err := c.negotiate(ctx)
	if err == nil {
		return c, nil
	}
	_ = c.Close()
	var status *StatusError
	if errors.As(err, &status) && (status.Status == http.StatusBadRequest || status.Status == http.StatusNotFound || status.Status == http.StatusMethodNotAllowed) {
		// What the specification says of 2024-11-05 servers: the URL may be that of
		// an event stream.
		old, oldErr := connectOldSSE(ctx, srv, opt)
		if oldErr == nil || errors.Is(oldErr, ErrUnauthorized) {
			return old, oldErr // it knows the way and wants a login, at least
		}
	}
	return nil, err
}

func dialOldSSE(ctx context.Context, srv *config.Server, opt Options) (*Conn, error) {
	c, err := connectOldSSE(ctx, srv, opt)
	var status *StatusError
	if errors.As(err, &status) {
		// Configured as "sse" once, upgraded since.
		if newer, newErr := dialHTTP(ctx, srv, opt); newErr == nil || errors.Is(newErr, ErrUnauthorized) {
			return newer, newErr
		}
	}
	return c, err
}

func connectOldSSE(ctx context.Context, srv *config.Server, opt Options) (*Conn, error) {
	opt.Version = mcp.LatestLegacy // this transport ended before the modern era
	c := newConn(srv, opt)
	if err := openOldSSELink(ctx, c); err != nil {
		c.stop()
		return nil, err
	}
	if err := c.negotiate(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}
