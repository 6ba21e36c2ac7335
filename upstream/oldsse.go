package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// oldSSELink speaks the HTTP+SSE transport of 2024-11-05: one event stream on
// which everything arrives, and an endpoint, named by the stream's first event, to
// which everything is posted.
type oldSSELink struct {
	*httpLink
	endpoint string
	gone     chan struct{}
}

// openOldSSELink opens the event stream of c and makes it the link of c.
func openOldSSELink(ctx context.Context, c *Conn) error {
	l := &oldSSELink{httpLink: newHTTPLink(c), gone: make(chan struct{})}
	c.link = l // before anything can be answered
	// The stream outlives the dialling, so it hangs on the connection's life; the
	// dialling's end is watched until the endpoint is known.
	stop := context.AfterFunc(ctx, c.stop)
	resp, err := l.get(c.life, "")
	if err == nil {
		err = l.begin(resp)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		c.stop()
		if ctx.Err() != nil {
			err = ended(ctx, c.server.Name, "opening the event stream", ctx.Err())
		}
		return err
	}
	return nil
}

// begin reads the endpoint and leaves a reader behind.
func (l *oldSSELink) begin(resp *http.Response) error {
	in := l.c.paced(l.c.life, resp.Body)
	r := wire.NewEvents(in, l.c.limit)
	for {
		ev, err := r.Next()
		in.next()
		if err != nil {
			_ = resp.Body.Close()
			return l.transport("receive", false, fmt.Errorf("%w: %w", errStreamEnded, err))
		}
		if ev.Type != "endpoint" {
			l.c.stray()
			continue
		}
		if l.endpoint, err = l.resolve(string(ev.Data)); err != nil {
			_ = resp.Body.Close()
			return err
		}
		l.c.wg.Go(func() { l.listen(resp, in, r) })
		return nil
	}
}

// resolve makes the endpoint absolute. It must stay within the origin that the
// user configured: credentials go there.
func (l *oldSSELink) resolve(endpoint string) (string, error) {
	base, err := url.Parse(l.c.server.URL)
	if err != nil {
		return "", l.protocol("its url cannot be read", err)
	}
	u, err := base.Parse(endpoint)
	if err != nil {
		return "", l.protocol("its endpoint is not a URL", err)
	}
	if u.Scheme != base.Scheme || u.Host != base.Host {
		return "", l.protocol("it names an endpoint at another origin", errRedirect)
	}
	return u.String(), nil
}

func (l *oldSSELink) listen(resp *http.Response, in *pacedReader, r *wire.Events) {
	defer func() { _ = resp.Body.Close() }()
	for {
		ev, err := r.Next()
		in.next()
		var long *wire.TooLongError
		if errors.As(err, &long) {
			l.c.tooLarge(long.Prefix)
			l.c.stray()
			continue
		}
		if err != nil {
			l.c.router.fail(l.transport("receive", true, fmt.Errorf("%w: %w", errStreamEnded, err)))
			close(l.gone)
			l.c.end()
			return
		}
		if ev.Type != "message" || len(ev.Data) == 0 {
			l.c.stray()
			continue
		}
		l.c.receive(ev.Data)
	}
}

func (l *oldSSELink) roundTrip(ctx context.Context, x *exchange) (mcp.Message, error) {
	if err := l.acquire(ctx); err != nil {
		return mcp.Message{}, err
	}
	err := l.send(ctx, x.body)
	l.release()
	if err != nil {
		return mcp.Message{}, err
	}
	select {
	case o := <-x.reply:
		return o.msg, o.err
	case <-ctx.Done():
		return mcp.Message{}, ctx.Err()
	}
}

func (l *oldSSELink) send(ctx context.Context, body []byte) error {
	ctx, stop := l.bound(ctx)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.endpoint, bytes.NewReader(body))
	if err != nil {
		return l.transport("send", false, err)
	}
	l.setHeader(req, l.c.version, nil)
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.do(req)
	if err != nil {
		return err
	}
	defer drain(resp.Body)
	if err := l.refused(resp); err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return l.status(resp, "in answer to a message")
	}
	return nil
}

func (l *oldSSELink) cancel(x *exchange, reason string) {
	ctx, stop := context.WithTimeout(l.c.life, cancelTimeout)
	defer stop()
	_ = l.send(ctx, cancelled(x, reason)) // best effort: the caller has left
}

func (l *oldSSELink) close() error {
	l.c.stop()
	<-l.gone
	return l.httpLink.close()
}
