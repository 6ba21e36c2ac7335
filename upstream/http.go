package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// errRedirect refuses a redirect that would carry a request to another origin.
var errRedirect = errors.New("redirect to another origin refused")

// httpLink speaks Streamable HTTP: with sessions in the older era, without in the
// modern one.
type httpLink struct {
	c       *Conn
	rt      http.RoundTripper
	to      *http.Request // what every request is made from; nil when the URL cannot be read
	session atomic.Pointer[string]
	owned   *Transport // nil when the transport belongs to the caller
	renewal singleflight.Group
	closing atomic.Bool
	closed  sync.Once
	stream  atomic.Bool   // the GET stream of the older era is open
	open    chan struct{} // holds one for every request that is open
}

func newHTTPLink(c *Conn) *httpLink {
	l := &httpLink{c: c, open: make(chan struct{}, limit.ServerHTTPRequests)}
	rt := c.opt.Transport
	if rt == nil {
		l.owned = NewTransport()
		rt = l.owned
	}
	l.rt = rt
	l.to, _ = http.NewRequest(http.MethodPost, c.server.URL, nil) // post says what is wrong with it
	return l
}

// newClient follows redirects only within the origin that was asked, so that
// neither credentials nor requests travel elsewhere.
func newClient(rt http.RoundTripper) *http.Client {
	return &http.Client{Transport: rt, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) >= 5 {
			return errors.New("more than 5 redirects")
		}
		if from := via[0].URL; req.URL.Scheme != from.Scheme || req.URL.Host != from.Host {
			return fmt.Errorf("%w (%s://%s)", errRedirect, req.URL.Scheme, req.URL.Host)
		}
		return nil
	}}
}

func (l *httpLink) roundTrip(ctx context.Context, x *exchange) (mcp.Message, error) {
	m, err := l.exchange(ctx, x)
	if err != nil {
		// The answer may have come on the session's own stream meanwhile.
		select {
		case o := <-x.reply:
			return o.msg, o.err
		default:
		}
	}
	return m, err
}

func (l *httpLink) exchange(ctx context.Context, x *exchange) (mcp.Message, error) {
	session := l.session.Load()
	if x.method == mcp.MethodInitialize {
		session = nil // it begins one
	}
	m, err := l.try(ctx, x, session)
	var status *StatusError
	if session == nil || x.renewed || !errors.As(err, &status) || status.Status != http.StatusNotFound {
		return m, err
	}
	// The server has forgotten our session and therefore did nothing: start a new
	// one, then ask again.
	if session, err = l.renew(ctx, session); err != nil {
		return mcp.Message{}, err
	}
	x.header = maps.Clone(x.header) // the first may still be read
	return l.try(ctx, x, session)
}

// bound ends a request with the connection.
func (l *httpLink) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.c.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// acquire takes one of the requests that may be open at once, and waits for it while
// there is none. Answers to the server need none: a call may wait for them.
func (l *httpLink) acquire(ctx context.Context) error {
	select {
	case l.open <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.open <- struct{}{}:
		return nil
	case <-ctx.Done():
		return l.transport("send", false, errNotSent)
	}
}

func (l *httpLink) release() { <-l.open }

func (l *httpLink) try(ctx context.Context, x *exchange, session *string) (mcp.Message, error) {
	if err := l.acquire(ctx); err != nil {
		return mcp.Message{}, err
	}
	defer l.release()
	resp, err := l.post(ctx, x.body, x.header, x.version, session)
	if err != nil {
		return mcp.Message{}, err
	}
	defer drain(resp.Body)
	if x.method == mcp.MethodInitialize && resp.StatusCode == http.StatusOK {
		var session *string
		if id := resp.Header.Get(wire.HeaderSession); id != "" {
			session = &id
			if len(id) > limit.ServerSessionID {
				return mcp.Message{}, l.protocol("its session id is too long", ErrLimit)
			}
		}
		l.session.Store(session)
	}
	return l.read(ctx, resp, x)
}

// drain reads what is left of a short body, so that the connection can be kept.
func drain(body io.ReadCloser) {
	if b, direct := body.(*directBody); direct && b.c == nil {
		return // everything is read
	}
	_, _ = io.CopyN(io.Discard, body, 4096)
	_ = body.Close()
}

// post sends a message. The header is its own from now on; nil for none.
func (l *httpLink) post(ctx context.Context, body []byte, header http.Header, version string, session *string) (*http.Response, error) {
	if l.to == nil {
		_, err := url.Parse(l.c.server.URL)
		return nil, l.transport("connect", false, urlCause(err))
	}
	req := l.to.WithContext(ctx)
	if req.Header = header; header == nil {
		req.Header = make(http.Header, headerRoom)
	}
	text := newPayload(body)
	req.Body, req.GetBody, req.ContentLength = text, text.again, int64(len(body))
	l.setHeader(req, version, session)
	req.Header["Content-Type"] = typeJSON
	req.Header["Accept"] = acceptBoth
	return l.do(req)
}

// headerRoom is how many headers a request has, about.
const headerRoom = 8

// payload is the body of a request: a text that is in memory.
type payload struct {
	bytes.Reader
	text []byte
}

func newPayload(text []byte) *payload {
	p := &payload{text: text}
	p.Reset(text)
	return p
}

func (p *payload) Close() error { return nil }

// again is the body for another attempt.
func (p *payload) again() (io.ReadCloser, error) { return newPayload(p.text), nil }

// Values of headers that are always the same.
var (
	typeJSON   = []string{"application/json"}
	acceptBoth = []string{"application/json, text/event-stream"}
)

// setHeader puts on what every request carries. Configured headers do not replace
// the protocol's own.
func (l *httpLink) setHeader(req *http.Request, version string, session *string) {
	if len(l.c.server.Headers) > 0 {
		own := maps.Clone(req.Header)
		for _, name := range sortedKeys(l.c.server.Headers) {
			req.Header.Set(name, l.c.server.Headers[name])
		}
		maps.Copy(req.Header, own)
	}
	if version != "" {
		req.Header[wire.HeaderVersion] = []string{version}
	}
	if session != nil && !mcp.Stateless(version) {
		req.Header[wire.HeaderSession] = []string{*session}
	}
}

func (l *httpLink) do(req *http.Request) (*http.Response, error) {
	if l.c.opt.Authorize != nil {
		if err := l.c.opt.Authorize(req); err != nil {
			return nil, &authorizeError{server: l.c.server.Name, err: err}
		}
	}
	resp, err := l.roundTripOnce(req)
	if err == nil {
		return resp, nil
	}
	if l.closing.Load() {
		return nil, fmt.Errorf("%s: %w", l.c.server.Name, ErrClosed)
	}
	if errors.Is(err, errRedirect) {
		return nil, &ProtocolError{Server: l.c.server.Name, Msg: "set url to the new address if you trust it", Err: urlCause(err)}
	}
	op, written := "receive", true
	if neverWritten(err) {
		op, written = "connect", false
	}
	return nil, l.transport(op, written, urlCause(err))
}

// roundTripOnce sends a request. A server that wants it elsewhere has not carried it
// out, so it is asked once more in the way that follows redirects.
func (l *httpLink) roundTripOnce(req *http.Request) (*http.Response, error) {
	if req.URL.User != nil {
		return newClient(l.rt).Do(req) // which makes a header of it
	}
	resp, err := l.rt.RoundTrip(req)
	if err != nil || resp.StatusCode/100 != 3 || resp.Header.Get("Location") == "" {
		return resp, err
	}
	drain(resp.Body)
	if req.GetBody != nil {
		req = req.Clone(req.Context())
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return newClient(l.rt).Do(req)
}

// urlCause drops the URL from an error of net/http: it may carry a secret.
func urlCause(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// neverWritten reports whether the request cannot have reached the server. Only
// failures to connect are certain.
func neverWritten(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	return errors.As(err, &dns) || isTLSError(err)
}

func (l *httpLink) transport(op string, written bool, err error) error {
	return &TransportError{Server: l.c.server.Name, Op: op, Written: written, Err: err}
}

// read turns an HTTP answer into the response to x.
func (l *httpLink) read(ctx context.Context, resp *http.Response, x *exchange) (mcp.Message, error) {
	kind := mediaType(resp.Header)
	if resp.StatusCode == http.StatusOK && kind == "text/event-stream" {
		return l.readStream(ctx, resp, x)
	}
	if err := l.refused(resp); err != nil {
		return mcp.Message{}, err
	}
	if kind != "application/json" {
		if resp.StatusCode == http.StatusBadRequest && x.version != "" && !mcp.KnownMethod(x.method) {
			// Some servers refuse a method they do not know without a word of JSON.
			return mcp.Message{}, mcp.Errorf(mcp.CodeMethodNotFound, "%s does not know the method %s: it answered HTTP %d", l.c.server.Name, x.method, resp.StatusCode)
		}
		return mcp.Message{}, l.status(resp, kind)
	}
	body, err := l.readBody(ctx, resp)
	if err != nil {
		return mcp.Message{}, err
	}
	m, err := l.pick(body, x)
	if err != nil && resp.StatusCode != http.StatusOK {
		return mcp.Message{}, l.status(resp, "JSON that is not an MCP response")
	}
	return m, err
}

// mediaType is the kind of a body, without parameters.
func mediaType(h http.Header) string {
	said := h.Get("Content-Type")
	if said == "application/json" || said == "text/event-stream" {
		return said
	}
	kind, _, _ := mime.ParseMediaType(said)
	return kind
}

// refused recognises the answers that say something about us, not about the
// request.
func (l *httpLink) refused(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusBadRequest:
		e := &UnauthorizedError{Server: l.c.server.Name, Status: resp.StatusCode, challenges: wire.ParseChallenges(resp.Header.Values("WWW-Authenticate"))}
		if resp.StatusCode == http.StatusUnauthorized || e.InsufficientScope() || e.Param("error") == "invalid_token" {
			return e
		}
	case http.StatusTooManyRequests:
		return &RateLimitedError{Server: l.c.server.Name, RetryAfter: retry.After(resp.Header.Get("Retry-After"))}
	}
	return nil
}

func (l *httpLink) status(resp *http.Response, what string) error {
	if what == "" {
		what = "no MCP answer"
	}
	return &StatusError{Server: l.c.server.Name, Status: resp.StatusCode, What: what}
}

// pick finds the response to x in a JSON body, which may be a batch.
func (l *httpLink) pick(body []byte, x *exchange) (mcp.Message, error) {
	parts, err := mcp.SplitBatch(body)
	if err != nil {
		return mcp.Message{}, l.protocol("its answer is not JSON", err)
	}
	for _, part := range parts {
		m, err := mcp.Parse(part)
		if err != nil {
			return mcp.Message{}, l.protocol("its answer cannot be read", err)
		}
		if m.Kind() == mcp.KindResponse && answers(m, x) {
			return m, nil
		}
		if m.Kind() == mcp.KindNotification {
			l.c.router.notification(x, m)
			l.c.stray()
		}
	}
	return mcp.Message{}, l.protocol("it answered another request than the one asked", nil)
}

// answers reports whether m is the response to x. An error about a message that
// the server could not read has no id of its own.
func answers(m mcp.Message, x *exchange) bool {
	n, ok := m.ID.Int()
	return ok && n == x.id || m.Error != nil && (m.ID.Null() || !m.ID.Present())
}

func (l *httpLink) protocol(msg string, err error) error {
	return &ProtocolError{Server: l.c.server.Name, Msg: msg, Err: err}
}

func (l *httpLink) send(ctx context.Context, body []byte) error {
	ctx, stop := l.bound(ctx)
	defer stop()
	var header http.Header
	if mcp.Stateless(l.c.version) {
		if m, err := mcp.Parse(body); err == nil && m.Method != "" {
			header = http.Header{wire.HeaderMethod: {m.Method}}
		}
	}
	resp, err := l.post(ctx, body, header, l.c.version, l.session.Load())
	if err != nil {
		return err
	}
	defer drain(resp.Body)
	if err := l.refused(resp); err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return l.status(resp, "in answer to a notification")
	}
	return nil
}

// cancel: in the modern era the stream was closed with the caller's context, and
// that is the cancellation. The older era needs to be told.
func (l *httpLink) cancel(x *exchange, reason string) {
	if mcp.Stateless(x.version) {
		return
	}
	ctx, stop := context.WithTimeout(l.c.life, cancelTimeout)
	defer stop()
	_ = l.send(ctx, cancelled(x, reason)) // best effort: the caller has left
}

// renew starts a new session in place of old; concurrent callers share one. If that
// fails the old one stays, so that the next caller that finds it lost tries again.
func (l *httpLink) renew(ctx context.Context, old *string) (*string, error) {
	ch := l.renewal.DoChan("", func() (any, error) {
		if now := l.session.Load(); now != old {
			return now, nil // somebody else was faster
		}
		rctx, stop := context.WithTimeout(l.c.life, max(l.c.server.Timeouts.Connect, config.DefaultConnectTimeout))
		defer stop()
		if err := l.c.reinitialize(rctx); err != nil {
			return nil, err
		}
		return l.session.Load(), nil
	})
	select {
	case r := <-ch:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*string), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *httpLink) close() error {
	l.closing.Store(true)
	l.closed.Do(l.leave)
	return nil
}

// leave deletes the session, so that the server need not wait for its end.
func (l *httpLink) leave() {
	if session := l.session.Load(); session != nil && !mcp.Stateless(l.c.version) {
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
		defer stop()
		if req, err := http.NewRequestWithContext(ctx, http.MethodDelete, l.c.server.URL, nil); err == nil {
			l.setHeader(req, l.c.version, session)
			if resp, err := l.do(req); err == nil {
				drain(resp.Body)
			}
		}
	}
	if l.owned != nil {
		l.owned.CloseIdleConnections()
	}
	l.c.end()
}
