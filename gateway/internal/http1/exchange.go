package http1

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/ending"
)

// exchange is a request and its answer. All its parts may outlive it, in the hands of
// somebody who does not know yet that it is over.
type exchange struct {
	ctx  ending.Context
	url  url.URL
	body Body
	w    response
}

// serve has the handler answer a request, of which only the head was taken from the
// buffer. It is false when the connection cannot be used any more.
func (c *conn) serve(h *head) bool {
	x := &exchange{ctx: ending.Under(c.base), url: h.target.url}
	x.w = response{c: c, x: x, header: make(http.Header, 4), length: -1}
	r := c.blank.WithContext(&x.ctx)
	r.URL, r.RequestURI, r.Host, r.Header, r.ContentLength = &x.url, h.target.uri, h.host, h.header, h.length
	r.Body = http.NoBody
	if h.length > 0 {
		c.takeBody(&x.body, h.length)
		r.Body = &x.body
	}
	c.begin(x, x.body.left == 0)
	if x.body.left > 0 && !c.due.IsZero() && !c.expires(time.Time{}) { // how long it may take is the handler's business
		return false
	}
	defer x.ctx.End(nil)
	if !c.handle(&x.w, r) {
		c.end()
		x.w.release()
		return false
	}
	kept := x.w.finish() // the agent need not wait for the rest
	kept = x.body.finish() && kept
	c.end()
	return kept && !c.s.leaving.Load()
}

// handle calls the handler; it is false when that has panicked.
func (c *conn) handle(w *response, r *http.Request) (well bool) {
	defer func() {
		if well {
			return
		}
		why := recover()
		if why == nil || why == http.ErrAbortHandler { //nolint:errorlint // this very value, as net/http has it
			return
		}
		logf := log.Printf
		if c.s.http.ErrorLog != nil {
			logf = c.s.http.ErrorLog.Printf
		}
		logf("http: panic serving %s: %v\n%s", r.RemoteAddr, why, debug.Stack())
	}()
	c.s.http.Handler.ServeHTTP(w, r)
	return true
}

// takeBody takes from the buffer what is there of the body.
func (c *conn) takeBody(b *Body, length int64) {
	n := min(int64(c.to-c.from), length)
	b.text = make([]byte, n)
	copy(b.text, c.buf[c.from:])
	b.left, b.c = length-n, c
	c.from += int(n)
}

// Body is the body of a request.
type Body struct {
	mu     sync.Mutex // guards everything
	text   []byte     // is here and was not read
	left   int64      // has yet to come
	c      *conn
	over   bool // the request was answered
	failed error
}

// Whole returns the body without reading it, if it is here and nobody has read of it.
// The caller may keep it.
func (b *Body) Whole() ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left > 0 || len(b.text) == 0 {
		return nil, false
	}
	text := b.text
	b.text = nil
	return text, true
}

// Read implements [io.Reader].
func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.over:
		return 0, http.ErrBodyReadAfterClose
	case b.failed != nil:
		return 0, b.failed
	case len(b.text) > 0:
		n := copy(p, b.text)
		b.text = b.text[n:]
		return n, nil
	}
	n, err := b.more(p)
	if err == nil && b.left == 0 && n > 0 {
		b.c.bodyRead()
	}
	return n, err
}

// more reads from the connection; it needs mu.
func (b *Body) more(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.c.Read(p)
	b.left -= int64(n)
	if err == nil || b.left == 0 {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	b.failed = err
	return n, err
}

// Close implements [io.Closer]. What was not read is passed over later.
func (b *Body) Close() error { return nil }

// finish passes over what was not read. It is false where that is not there in time.
func (b *Body) finish() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over, b.text = true, nil
	if b.left == 0 || b.failed != nil {
		return b.failed == nil
	}
	if limit := b.c.s.http.ReadHeaderTimeout; limit > 0 && !b.c.expires(time.Now().Add(limit)) {
		return false
	}
	for room := make([]byte, 4<<10); b.left > 0; {
		if _, err := b.more(room); err != nil {
			return false
		}
	}
	return true
}
