package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/usher-mcp/usher/gateway/internal/connlimit"
	"github.com/usher-mcp/usher/gateway/internal/http1"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/limit"
)

// Bounds of a connection before there is a request to speak of.
const (
	headerTimeout  = limit.HeaderTime
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = limit.HeaderBytes
)

// NewServer returns the HTTP server for a handler that holds the gateway's: with
// the bounds that keep slow or hostile peers from using it up.
func (g *Gateway) NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: connlimit.TrackRequests(h), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		DisableGeneralOptionsHandler: true, ConnContext: connlimit.ConnContext,
	}
}

// Serve serves h, by default the gateway's own handler, on l until ctx ends. Then it
// accepts no more, ends the streams that only wait in order, lets requests in
// flight finish for Options.Grace, and cancels the rest. It closes the gateway.
func (g *Gateway) Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	if h == nil {
		h = g.Handler()
	}
	var under sync.WaitGroup
	srv := http1.New(g.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		under.Add(1)
		defer under.Done()
		h.ServeHTTP(w, r)
	})))
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(g.LimitConns(l)) }()
	var err error
	select {
	case err = <-failed:
		g.Close()
		_ = srv.Close() // the error above is the one to report
		under.Wait()
		return err
	case <-ctx.Done():
	}
	g.Drain()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.opt.Grace)
	defer cancel()
	err = srv.Shutdown(grace)
	g.Close() // requests in flight are cancelled
	if errors.Is(err, context.DeadlineExceeded) {
		_ = srv.Close() // and then cut off
		err = nil
	}
	<-failed
	under.Wait()
	return err
}

// LimitConns bounds the connections of a listener as [Gateway.Serve] does, for other
// servers made with [Gateway.NewServer].
func (g *Gateway) LimitConns(l net.Listener) net.Listener { return connlimit.New(l, g.opt.MaxConns) }

// newReply makes the reply to r, a request of a principal. track may be nil.
func (g *Gateway) newReply(w http.ResponseWriter, r *http.Request, principal string, track *stream.Replay) *stream.Reply {
	return stream.NewReply(w, r, g.opt.KeepAlive, &g.held, principal, track)
}
