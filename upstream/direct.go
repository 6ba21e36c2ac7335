package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/usher-mcp/usher/internal/ending"
	"github.com/usher-mcp/usher/internal/limit"
)

// maxDirectBody is what is written before anything is read. More could wait for a
// server that answers before it has read everything.
const maxDirectBody = 64 << 10

// directBuffers hold requests while they are written.
var directBuffers = sync.Pool{New: func() any { return new(make([]byte, 0, 4<<10)) }}

// plain reports whether a request may go the direct way: a short POST over plain
// HTTP/1.1 that asks for nothing which only net/http does.
func plain(req *http.Request) bool {
	return canPeek && req.Method == http.MethodPost && req.URL.Scheme == "http" &&
		req.Body != nil && req.ContentLength > 0 && req.ContentLength <= maxDirectBody &&
		(req.Host == "" || req.Host == req.URL.Host) && !req.Close && req.TransferEncoding == nil && req.Trailer == nil &&
		httptrace.ContextClientTrace(req.Context()) == nil
}

// appendHead appends everything that stands before the body. It is false for what
// has to be looked at more closely than is done here.
func appendHead(dst []byte, req *http.Request) ([]byte, bool) {
	uri := req.URL.RequestURI()
	if !plainText(uri) || !plainHost(req.URL.Host) {
		return dst, false
	}
	dst = append(append(dst, "POST "...), uri...)
	dst = append(append(dst, " HTTP/1.1\r\nHost: "...), req.URL.Host...)
	if req.Header["User-Agent"] == nil {
		dst = append(dst, "\r\nUser-Agent: Go-http-client/1.1"...)
	}
	dst = strconv.AppendInt(append(dst, "\r\nContent-Length: "...), req.ContentLength, 10)
	dst = append(dst, "\r\n"...)
	for name, values := range req.Header {
		if !plainName(name) {
			return dst, false
		}
		for _, v := range values {
			if !plainValue(v) {
				return dst, false
			}
			dst = append(append(append(append(dst, name...), ": "...), v...), "\r\n"...)
		}
	}
	return append(dst, "\r\n"...), true
}

// plainText is visible ASCII.
func plainText(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != ""
}

// plainHost needs no translation and names no zone.
func plainHost(host string) bool {
	return plainText(host) && !strings.ContainsAny(host, "%@/?#\"<>\\^`{|}")
}

// plainName is a header of the common form that means nothing to the connection.
func plainName(name string) bool {
	switch name {
	case "", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && (c < '0' || c > '9') {
			return false
		}
	}
	return http.CanonicalHeaderKey(name) == name // or the cases above would miss it
}

// plainValue is printable ASCII without space at its ends.
func plainValue(v string) bool {
	for i := range len(v) {
		if v[i] < ' ' || v[i] >= 0x7f {
			return false
		}
	}
	return v == "" || v[0] != ' ' && v[len(v)-1] != ' '
}

// directConn is a connection of the direct way. Idle ones have no goroutine.
type directConn struct {
	net.Conn
	host  string
	raw   syscall.RawConn
	r     *bufio.Reader
	left  int64     // what may still be read
	since time.Time // idle since
	peek  func(fd uintptr) bool
	quiet bool // what peek found
}

func (t *Transport) dial(ctx context.Context, host string) (*directConn, error) {
	addr := host
	if _, _, err := net.SplitHostPort(host); err != nil {
		addr = net.JoinHostPort(strings.Trim(host, "[]"), "80")
	}
	nc, err := t.base.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &directConn{Conn: nc, host: host}
	sc, ok := nc.(syscall.Conn)
	if ok {
		c.raw, err = sc.SyscallConn()
	}
	if !ok || err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("connect to %s: the connection cannot be watched: %w", host, err)
	}
	c.r = bufio.NewReaderSize(c, 4<<10)
	c.peek = func(fd uintptr) bool {
		c.quiet = nothingToRead(fd)
		return true
	}
	return c, nil
}

// alive reports whether an idle connection can be used: the peer has not closed it
// and has said nothing.
func (c *directConn) alive() bool {
	c.quiet = false
	return c.raw.Read(c.peek) == nil && c.quiet
}

var errLongHeader = errors.New("the header of the answer is too long")

// Read implements [io.Reader] within the bound of the header.
func (c *directConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLongHeader
	}
	n, err := c.Conn.Read(p)
	c.left -= int64(n)
	return n, err
}

// interrupt ends whatever waits on the connection; it is not used again.
func (c *directConn) interrupt() { _ = c.SetDeadline(time.Unix(1, 0)) }

// roundTrip sends the request whose head stands in buf and reads the answer's.
func (t *Transport) roundTrip(req *http.Request, buf *[]byte) (*http.Response, error) {
	ctx := req.Context()
	defer func() { _ = req.Body.Close() }() // it is memory
	if err := appendBody(buf, req); err != nil {
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	c, err := t.conn(ctx, req.URL.Host)
	if err != nil {
		return nil, endedOr(ctx, err)
	}
	stop := ending.AfterFunc(ctx, c.interrupt)
	if _, err = c.Write(*buf); err == nil {
		var resp *http.Response
		if resp, err = c.answer(req); err == nil {
			return t.handOver(ctx, c, resp, stop), nil
		}
	}
	stop()
	_ = c.Close() // the error above is the one to report
	return nil, endedOr(ctx, err)
}

// appendBody appends the body of a request.
func appendBody(buf *[]byte, req *http.Request) error {
	if p, ok := req.Body.(*payload); ok && p.Len() == len(p.text) && req.ContentLength == p.Size() {
		*buf = append(*buf, p.text...)
		return nil
	}
	n := len(*buf)
	*buf = append(*buf, make([]byte, req.ContentLength)...)
	_, err := io.ReadFull(req.Body, (*buf)[n:])
	return err
}

// endedOr is the end of ctx where that is the reason for err.
func endedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// maxInterim bounds answers that only say that there will be one.
const maxInterim = 5

// answer reads up to the body of the answer.
func (c *directConn) answer(req *http.Request) (*http.Response, error) {
	for range maxInterim {
		c.left = limit.ServerHeaderBytes
		resp, err := http.ReadResponse(c.r, req)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("the server closed the connection: %w", io.EOF)
		}
		if err != nil {
			return nil, err
		}
		c.left = math.MaxInt64
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return nil, errors.New("the server wants to speak another protocol")
		}
		if resp.StatusCode >= 200 {
			return resp, nil
		}
	}
	return nil, errors.New("the server says again and again that it will answer")
}

// handOver makes reading the body to its end what gives the connection back.
func (t *Transport) handOver(ctx context.Context, c *directConn, resp *http.Response, stop func() bool) *http.Response {
	b := &directBody{t: t, ctx: ctx, c: c, body: resp.Body, stop: stop, keep: !resp.Close}
	if resp.Body == http.NoBody {
		b.end(true)
		return resp
	}
	resp.Body = b
	return resp
}

// directBody is the body of an answer; one goroutine reads and closes it.
type directBody struct {
	t    *Transport
	ctx  context.Context
	c    *directConn // nil once it is over
	body io.ReadCloser
	stop func() bool
	keep bool
}

func (b *directBody) Read(p []byte) (int, error) {
	if b.c == nil {
		return 0, io.EOF
	}
	n, err := b.body.Read(p)
	if err == nil {
		return n, nil
	}
	whole := errors.Is(err, io.EOF)
	if b.end(whole); !whole {
		err = endedOr(b.ctx, err)
	}
	return n, err
}

func (b *directBody) Close() error {
	if b.c != nil {
		b.end(false)
	}
	return nil
}

// end gives the connection back, or closes it when something may still come.
func (b *directBody) end(whole bool) {
	c := b.c
	b.c = nil
	if untouched := b.stop(); untouched && whole && b.keep && c.r.Buffered() == 0 {
		b.t.put(c)
		return
	}
	_ = c.Close() // what was to be read is read
}
