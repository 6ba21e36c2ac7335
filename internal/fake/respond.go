package fake

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// response is one HTTP response that carries the messages of a stream.
type response struct {
	s      *Server
	ex     *exchange
	w      http.ResponseWriter
	body   io.Writer
	events eventWriter
	drop   bool // the stream ends before the answer
}

// respond carries a stream to the client: as JSON when the answer is all there is,
// as an event stream otherwise.
func (s *Server) respond(w http.ResponseWriter, ctx context.Context, ex *exchange, st *stream) {
	ctx, leave := joined(ctx, s.ctx)
	defer leave()
	r := &response{s: s, ex: ex, w: w, body: w}
	method := ex.msg.Method
	if s.sw.hit(s, ex, "hang-after-headers") {
		r.start("application/json", http.StatusOK)
		<-ctx.Done()
		return
	}
	if v, ok := s.sw.fire("drip", method); ok {
		r.drip(ctx, time.Duration(v.number(10))*time.Millisecond)
		return
	}
	if v, ok := s.sw.fire("bigheader", method); ok {
		w.Header().Set("X-Big", strings.Repeat("h", v.number(1024)<<10))
	}
	if v, ok := s.sw.fire("slowbyte", method); ok {
		r.body = slowWriter{w: w, pause: time.Duration(v.number(200)) * time.Millisecond, stop: ctx.Done(), flush: r.flush}
	}
	drop, dropped := s.sw.fire("sse-drop", method)
	r.drop = dropped
	retry, ids := s.sw.fire("event-ids", method)
	_, split := s.sw.fire("sse-multiline", method)
	r.events = eventWriter{w: r.body, flush: r.flush, split: split}
	if (ids || drop == "ids") && !ex.modern {
		r.events.ids = st.id
	}
	first, err := st.next(ctx, 0)
	if err != nil {
		r.nothing(ctx)
		return
	}
	_, always := s.sw.fire("sse", method)
	if first.final && !always && !split && !r.drop && r.events.ids == "" {
		r.json(first.frame)
		return
	}
	r.stream(ctx, st, time.Duration(retry.number(10))*time.Millisecond)
}

func (r *response) flush() { _ = http.NewResponseController(r.w).Flush() }

func (r *response) start(contentType string, status int) {
	if v, ok := r.s.sw.fire("wrong-content-type", r.ex.msg.Method); ok {
		contentType = v.text("text/plain")
	}
	r.w.Header().Set("Content-Type", contentType)
	if contentType == "text/event-stream" {
		r.w.Header().Set("Cache-Control", "no-cache")
		r.w.Header().Set("X-Accel-Buffering", "no")
	}
	r.w.WriteHeader(status)
	r.flush()
}

// drip writes comments until the client is gone.
func (r *response) drip(ctx context.Context, gap time.Duration) {
	r.start("text/event-stream", http.StatusOK)
	for pause(ctx, gap) {
		if _, err := io.WriteString(r.w, ": still here\n\n"); err != nil {
			return
		}
		r.flush()
	}
}

// nothing ends a request that got no answer.
func (r *response) nothing(ctx context.Context) {
	if r.ex.exited() || ctx.Err() != nil {
		panic(errAborted)
	}
	// The request was cancelled or the server closes.
	r.w.WriteHeader(http.StatusServiceUnavailable)
}

func (r *response) json(f frame) {
	s, method := r.s, r.ex.msg.Method
	if s.sw.hit(s, r.ex, "emptybody") {
		r.w.WriteHeader(http.StatusAccepted)
		return
	}
	if v, ok := s.sw.fire("gzip", method); ok {
		r.bomb(int64(v.number(100)))
		return
	}
	half, halfclose := s.sw.fire("halfclose", method)
	if f.pad == 0 && !halfclose {
		r.w.Header().Set("Content-Length", strconv.FormatInt(f.size(), 10))
	}
	if s.sw.hit(s, r.ex, "truncated-json") {
		f = f.half()
		r.w.Header().Set("Content-Length", strconv.FormatInt(f.size(), 10))
	}
	status := f.status
	if status == 0 {
		status = http.StatusOK
	}
	r.start("application/json", status)
	if halfclose {
		if half != "headers" {
			_ = f.half().writeTo(r.body)
			r.flush()
		}
		panic(errAborted)
	}
	_ = f.writeTo(r.body)
}

// bomb answers with a small body that unpacks to a large one.
func (r *response) bomb(megabytes int64) {
	r.w.Header().Set("Content-Encoding", "gzip")
	r.start("application/json", http.StatusOK)
	f := bigFrame(r.ex.msg.ID, megabytes)
	_, _ = r.w.Write(packed(f.head))
	// Parts that were packed one by one unpack as one body; so the filler is
	// packed once only.
	filler := packed(bytes.Repeat([]byte("x"), 1e6))
	for range megabytes {
		if _, err := r.w.Write(filler); err != nil {
			return
		}
	}
	_, _ = r.w.Write(packed(f.tail))
}

func packed(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

func (r *response) stream(ctx context.Context, st *stream, retry time.Duration) {
	r.start("text/event-stream", http.StatusOK)
	_ = r.events.open(retry)
	half, halfclose := r.s.sw.fire("halfclose", r.ex.msg.Method)
	if halfclose && half == "headers" {
		panic(errAborted)
	}
	for i := 0; ; i++ {
		e, err := st.next(ctx, i)
		switch {
		case err != nil && r.ex.exited():
			panic(errAborted)
		case err != nil:
			return
		case e.final && halfclose:
			_ = r.events.write(e.half(), i+1)
			panic(errAborted)
		case e.final && r.drop:
			r.s.note(r.ex.sess, Entry{Event: EventFault, Name: "sse-drop", Method: r.ex.msg.Method, ID: r.ex.msg.ID.JSON()})
			return
		}
		if r.events.write(e.frame, i+1) != nil || e.final {
			return
		}
	}
}
