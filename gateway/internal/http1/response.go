package http1

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxGathered is what is copied so that it leaves with the head, in one piece.
	maxGathered = 16 << 10
	// maxUndeclared is what waits for the end of an answer whose length the handler did
	// not tell, as it does in net/http; beyond, it goes in chunks.
	maxUndeclared = 2 << 10
)

// outgoing hold answers until they are sent.
var outgoing = sync.Pool{New: func() any { return new(make([]byte, 0, 2<<10)) }}

// response is the answer to a request, see [http.ResponseWriter].
type response struct {
	c      *conn
	x      *exchange
	header http.Header
	status int     // 0 until it is known
	length int64   // what the handler says, -1 if nothing
	sent   int64   // of the body
	out    *[]byte // is to be sent; nil until status is known
	early  []byte  // of the body, while it is open how the head ends
	sniff  bool    // the type is to be found out
	whole  bool    // the head is complete
	chunks bool
	last   bool // the connection ends with it
	timed  bool // a write deadline is set
	over   atomic.Bool
	err    error // of sending
}

// Header implements [http.ResponseWriter].
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter]. Interim answers are not sent.
func (w *response) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %d", status)) // as in net/http
	}
	if w.status != 0 || w.over.Load() || status >= 100 && status < 200 {
		return
	}
	w.status = status
	w.out = outgoing.Get().(*[]byte)
	w.begin()
}

// begin writes the head up to what depends on the body.
func (w *response) begin() {
	out := append((*w.out)[:0], "HTTP/1.1 "...)
	out = append(strconv.AppendInt(out, int64(w.status), 10), ' ')
	if text := http.StatusText(w.status); text != "" {
		out = append(out, text...)
	} else {
		out = strconv.AppendInt(append(out, "status code "...), int64(w.status), 10)
	}
	out = append(out, "\r\n"...)
	for key, values := range w.header {
		switch key {
		case "Content-Length":
			if len(values) > 0 && plainDigits(values[0]) {
				w.length, _ = strconv.ParseInt(values[0], 10, 64) // digits
			}
			continue
		case "Connection":
			w.last = w.last || len(values) > 0 && strings.EqualFold(values[0], "close")
		case "Transfer-Encoding", "Trailer":
			continue
		}
		if !plainName(key) {
			continue
		}
		for _, v := range values {
			out = appendValue(append(append(out, key...), ": "...), v)
			out = append(out, "\r\n"...)
		}
	}
	if !w.last && w.c.s.leaving.Load() {
		w.last = true
		out = append(out, "Connection: close\r\n"...)
	}
	if _, ok := w.header["Date"]; !ok {
		out = w.c.date.append(out)
	}
	_, typed := w.header["Content-Type"]
	w.sniff = !typed && w.header.Get("Content-Encoding") == ""
	*w.out = out
	if !hasBody(w.status) {
		w.length = 0
		w.close(nil)
	} else if w.length >= 0 && !w.sniff {
		w.close(nil)
	}
}

// close ends the head; body is its first part, to tell the type of.
func (w *response) close(body []byte) {
	out := *w.out
	if w.sniff && len(body) > 0 {
		out = append(append(append(out, "Content-Type: "...), http.DetectContentType(body)...), "\r\n"...)
	}
	switch {
	case !hasBody(w.status):
	case w.length >= 0:
		out = append(strconv.AppendInt(append(out, "Content-Length: "...), w.length, 10), "\r\n"...)
	default:
		w.chunks = true
		out = append(out, "Transfer-Encoding: chunked\r\n"...)
	}
	*w.out = append(out, "\r\n"...)
	w.whole = true
}

func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

func plainDigits(s string) bool { return len(s) < 19 && s != "" && strings.Trim(s, "0123456789") == "" }

// appendValue appends a value on one line, whatever is in it.
func appendValue(dst []byte, v string) []byte {
	v = strings.Trim(v, " \t\r\n")
	if strings.ContainsAny(v, "\r\n") {
		v = strings.NewReplacer("\r", " ", "\n", " ").Replace(v)
	}
	return append(dst, v...)
}

// Write implements [http.ResponseWriter].
func (w *response) Write(p []byte) (int, error) {
	if w.over.Load() {
		return 0, http.ErrBodyNotAllowed
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case len(p) == 0:
		return 0, w.err
	case !hasBody(w.status):
		return 0, http.ErrBodyNotAllowed
	}
	w.sent += int64(len(p))
	if w.length >= 0 && w.sent > w.length {
		return 0, http.ErrContentLength // and finish closes the connection
	}
	if !w.whole {
		if w.length < 0 && w.sent <= maxUndeclared {
			w.early = append(w.early, p...)
			return len(p), nil
		}
		w.goOn(p)
	}
	w.put(p)
	return len(p), w.err
}

// WriteString implements [io.StringWriter].
func (w *response) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// goOn ends the head when the body is not whole yet; more is what comes next of it.
func (w *response) goOn(more []byte) {
	early := w.early
	w.early = nil
	if first := early; len(first) > 0 {
		w.close(first)
		w.put(first)
		return
	}
	w.close(more)
}

// put appends a part of the body, or sends it at once where it is long.
func (w *response) put(p []byte) {
	if w.chunks {
		*w.out = append(strconv.AppendInt(*w.out, int64(len(p)), 16), "\r\n"...)
	}
	if n := maxGathered - len(*w.out); n < len(p) {
		n = max(n, 0)
		*w.out = append(*w.out, p[:n]...)
		w.send()
		w.write(p[n:])
	} else {
		*w.out = append(*w.out, p...)
	}
	if w.chunks {
		*w.out = append(*w.out, "\r\n"...)
	}
}

// send sends what waits.
func (w *response) send() {
	w.write(*w.out)
	*w.out = (*w.out)[:0]
}

func (w *response) write(p []byte) {
	if w.err != nil || len(p) == 0 {
		return
	}
	if _, w.err = w.c.Write(p); w.err != nil {
		w.x.ctx.End(nil) // nobody waits for it
	}
}

// FlushError is what [http.ResponseController] calls.
func (w *response) FlushError() error {
	if w.over.Load() {
		return http.ErrBodyNotAllowed
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.whole {
		w.goOn(nil)
	}
	w.send()
	return w.err
}

// Flush implements [http.Flusher].
func (w *response) Flush() { _ = w.FlushError() } // Write will say it

// SetReadDeadline is for [http.ResponseController]. It bounds the reading of the body;
// one that is here already needs no bound.
func (w *response) SetReadDeadline(at time.Time) error {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.over.Load() || w.c.whole {
		return nil
	}
	w.c.due = at
	return w.c.Conn.SetReadDeadline(at)
}

// SetWriteDeadline is for [http.ResponseController]. It ends with the request.
func (w *response) SetWriteDeadline(at time.Time) error {
	if w.over.Load() {
		return nil
	}
	w.timed = !at.IsZero()
	return w.c.Conn.SetWriteDeadline(at)
}

// finish sends what is left. It is false where the connection ends with it.
func (w *response) finish() bool {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.over.Store(true)
	if !w.whole && w.length < 0 {
		w.length = w.sent
	}
	if !w.whole {
		w.close(w.early)
		*w.out = append(*w.out, w.early...)
	} else if w.chunks {
		*w.out = append(*w.out, "0\r\n\r\n"...)
	}
	w.send()
	w.release()
	if w.timed && w.c.Conn.SetWriteDeadline(time.Time{}) != nil {
		return false
	}
	return w.err == nil && !w.last && (w.chunks || w.sent == w.length)
}

// release gives back what the answer was made in.
func (w *response) release() {
	w.over.Store(true)
	if w.out != nil && cap(*w.out) <= 2*maxGathered {
		outgoing.Put(w.out)
	}
	w.out = nil
}

// stamp is a Date header, which is the same for a second.
type stamp struct {
	second int64
	text   []byte
}

func (s *stamp) append(dst []byte) []byte {
	now := time.Now()
	if second := now.Unix(); second != s.second || s.text == nil {
		s.second = second
		s.text = append(now.UTC().AppendFormat(append(s.text[:0], "Date: "...), http.TimeFormat), "\r\n"...)
	}
	return append(dst, s.text...)
}
