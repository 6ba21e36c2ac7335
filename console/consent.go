package console

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/event"
)

// Bounds of a browser.
const (
	headerTimeout  = 5 * time.Second
	idleTimeout    = time.Minute
	maxHeaderBytes = 16 << 10
	goodbye        = 2 * time.Second
)

// Driver is what the page needs of a [bulk.Driver].
type Driver interface {
	// Rows says where every account stands.
	Rows() []bulk.Row
	// Subscribe tells when to ask again.
	Subscribe() *event.Subscription[bulk.Event]
}

// ConsentOptions steer a Consent. The zero value works.
type ConsentOptions struct {
	// Port is where Start listens. Default: any that is free.
	Port int
	// Linger is how long the page stays after the last login ended, so that a browser
	// gets to see it. Default 3 s.
	Linger time.Duration
	// KeepAlive is how often a stream without news says that it is alive. Default 15 s.
	KeepAlive time.Duration
}

// Consent is the page on which a person logs in everywhere: an http.Handler for
// requests below /connect. It answers only requests from this machine, addressed to
// it by a loopback name, and shows nothing without a link of [Consent.Link].
type Consent struct {
	driver  Driver
	opt     ConsentOptions
	mux     *http.ServeMux
	door    door
	streams atomic.Int32

	life context.Context // ends with Close, or when every login has ended
	stop context.CancelFunc
	work sync.WaitGroup
	done chan struct{} // closed when nothing is served any more

	mu     sync.Mutex // guards base, server, closed
	base   string     // scheme and host of the page; "" before Start
	server *http.Server
	closed bool
	once   sync.Once // closes done
}

// NewConsent returns the page over a driver, which stays the caller's.
func NewConsent(d Driver, options *ConsentOptions) *Consent {
	c := &Consent{driver: d, done: make(chan struct{}), door: door{cookie: "usher_connect", path: "/connect"}}
	if options != nil {
		c.opt = *options
	}
	if c.opt.Linger <= 0 {
		c.opt.Linger = 3 * time.Second
	}
	if c.opt.KeepAlive <= 0 {
		c.opt.KeepAlive = 15 * time.Second
	}
	c.life, c.stop = context.WithCancel(context.Background())
	c.mux = http.NewServeMux()
	c.mux.HandleFunc("GET /connect", c.servePage)
	c.mux.HandleFunc("GET /connect/events", c.serveEvents)
	c.mux.HandleFunc("GET /connect/consent.css", asset("text/css; charset=utf-8", "consent.css"))
	c.mux.HandleFunc("GET /connect/consent.js", asset("text/javascript; charset=utf-8", "consent.js"))
	return c
}

// ServeHTTP implements http.Handler.
func (c *Consent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header(), consentPolicy)
	status, words := local(r)
	if status == 0 {
		status, words = foreign(r)
	}
	if status == 0 && r.Method != http.MethodGet {
		status, words = http.StatusMethodNotAllowed, "Method not allowed."
	}
	if status != 0 {
		refuse(w, consentStyle, status, words)
		return
	}
	if c.life.Err() != nil {
		refuse(w, consentStyle, http.StatusGone, "This page has done its work and is closed.")
		return
	}
	c.mux.ServeHTTP(w, r)
}

// Start serves the page on a loopback address and returns the link to it, which works
// once. The page closes by itself, some time after every login has ended.
func (c *Consent) Start(ctx context.Context) (link string, err error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.opt.Port)))
	if err != nil {
		// Some machines have the other loopback only.
		var second error
		if ln, second = lc.Listen(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(c.opt.Port))); second != nil {
			return "", fmt.Errorf("serve the consent page: %w", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.server != nil {
		_ = ln.Close()
		return "", fmt.Errorf("serve the consent page: %w", http.ErrServerClosed)
	}
	c.base = "http://" + ln.Addr().String()
	c.server = &http.Server{
		Handler: c, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: log.New(io.Discard, "", 0), // browsers come and go
	}
	server := c.server
	c.work.Go(func() { _ = server.Serve(ln) }) // ends with http.ErrServerClosed
	c.work.Go(c.closeWhenDone)
	return c.base + "/connect?once=" + c.door.mint(), nil
}

// Link returns another link to the page, which works once too. Before Start, and when
// the page is part of another server, it is only the path.
func (c *Consent) Link() string {
	c.mu.Lock()
	base := c.base
	c.mu.Unlock()
	return base + "/connect?once=" + c.door.mint()
}

// Done is closed when the page is not served any more.
func (c *Consent) Done() <-chan struct{} { return c.done }

// Close ends the page and waits until nothing is served any more. Logins that wait go
// on to wait. When all have ended, browsers get to see that first.
func (c *Consent) Close() error {
	if finished(c.driver.Rows()) {
		c.drain()
	}
	c.shut()
	c.work.Wait()
	return nil
}

// drain waits until every stream has told how the last login ended, which it then
// does by itself. A browser that does not read is not waited for.
func (c *Consent) drain() {
	ctx, cancel := context.WithTimeout(c.life, goodbye)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for c.streams.Load() > 0 {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// shut ends all streams and lets what is being written reach the browser.
func (c *Consent) shut() {
	c.mu.Lock()
	c.closed = true
	server := c.server
	c.mu.Unlock()
	c.stop()
	if server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), goodbye)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
	c.once.Do(func() { close(c.done) })
}

// closeWhenDone watches until every login has ended.
func (c *Consent) closeWhenDone() {
	sub := c.driver.Subscribe()
	defer sub.Close()
	for !finished(c.driver.Rows()) {
		if _, _, err := sub.Next(c.life); err != nil {
			return // closed before
		}
	}
	timer := time.NewTimer(c.opt.Linger)
	defer timer.Stop()
	select {
	case <-timer.C:
		c.shut()
	case <-c.life.Done():
	}
}

// finished reports whether nothing is left to do.
func finished(rows []bulk.Row) bool {
	for _, r := range rows {
		if !r.Phase.Ended() {
			return false
		}
	}
	return len(rows) > 0
}
