package stream

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/gateway/internal/lifetime"
	"github.com/usher-mcp/usher/internal/wire"
)

// WriteTimeout is how long an agent may take to accept what is written to it.
const WriteTimeout = 30 * time.Second

// Reply is the answer to one POST. It stays open which form it takes until
// something has to be said before the answer: then it becomes an event stream, else
// it is one JSON text. A silent one becomes a stream after a while, too, so that
// nobody in between takes it for dead.
type Reply struct {
	w         http.ResponseWriter
	rc        *http.ResponseController
	stream    bool // the agent takes event streams
	plain     bool // the agent takes JSON
	prefer    bool // it would rather have a stream
	keep      time.Duration
	Track     *Replay // nil where a broken stream cannot be taken up again
	held      *ByteQuota
	principal string

	mu       sync.Mutex // guards what follows
	timer    *time.Timer
	begun    bool // it is a stream
	closed   bool // nothing more is taken
	broken   bool // writing failed
	away     bool // the agent left; what comes is for its return
	answered bool // finish has the last word
	writing  bool // somebody writes what waits
	frames   [][]byte
	size     int
	counted  int           // of size, in held
	idle     chan struct{} // closed when writing ends, for those that wait
}

// NewReply makes the reply to r, a request of a principal. A silent one becomes a stream
// after keep. held counts what waits. track may be nil.
func NewReply(w http.ResponseWriter, r *http.Request, keep time.Duration, held *ByteQuota, principal string, track *Replay) *Reply {
	p := &Reply{w: w, rc: http.NewResponseController(w), keep: keep, Track: track, held: held, principal: principal}
	p.plain, p.stream, p.prefer = Accepts(r.Header)
	if p.stream {
		p.mu.Lock() // the timer may be quick
		p.timer = time.AfterFunc(p.keep, p.tick)
		p.mu.Unlock()
	}
	return p
}

// Accepts reads which of the two forms an agent takes. Who says nothing takes both,
// and who names streams first would rather have one.
func Accepts(h http.Header) (plain, stream, prefer bool) {
	values := h["Accept"]
	if len(values) == 0 {
		return true, true, false
	}
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			kind, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "*/*":
				plain, stream = true, true
			case "application/json", "application/*":
				plain = true
			case "text/event-stream", "text/*":
				prefer = prefer || !plain
				stream = true
			}
		}
	}
	return plain, stream, prefer
}

// Comment is a sign of life that no reader takes for an event.
var Comment = []byte(":\n\n")

// tick says that we are still there.
func (p *Reply) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.away {
		return
	}
	if !p.begun && p.Track != nil {
		p.push(p.Track.prime())
	}
	if len(p.frames) == 0 {
		p.push(Comment)
	}
	p.timer.Reset(p.keep)
}

// CanStream implements [outlet].
func (p *Reply) CanStream() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stream
}

// Send implements [outlet].
func (p *Reply) Send(message []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed || !p.stream:
		return false
	case p.away || p.broken:
		if p.Track != nil && p.begun {
			p.Track.Add(message, false) // for when the agent comes back
			return true
		}
		return false
	case len(p.frames) >= maxQueued || p.size+len(message) > MaxQueuedBytes, !p.held.Take(p.principal, len(message)):
		return false
	}
	p.counted += len(message)
	p.push(p.event(message, false))
	return true
}

// event frames a message; it needs mu.
func (p *Reply) event(message []byte, last bool) []byte {
	if p.Track != nil {
		if !p.begun {
			p.push(p.Track.prime())
		}
		return p.Track.Add(message, last)
	}
	return wire.AppendEvent(make([]byte, 0, len(message)+32), "", message)
}

// push queues a frame and sees to it that somebody writes it; it needs mu.
func (p *Reply) push(frame []byte) {
	p.begun = true
	p.frames = append(p.frames, frame)
	p.size += len(frame)
	if !p.writing {
		p.writing, p.idle = true, make(chan struct{})
		go p.write() // ends when the queue is empty; finish and leave wait for it
	}
}

// write empties the queue.
func (p *Reply) write() {
	for first := true; ; first = false {
		p.mu.Lock()
		frames, counted := p.frames, p.counted
		p.frames, p.size, p.counted = nil, 0, 0
		if len(frames) == 0 || p.broken || p.away {
			p.writing = false
			close(p.idle)
			p.mu.Unlock()
			p.held.Give(p.principal, counted)
			return
		}
		p.mu.Unlock()
		err := p.flush(frames, first)
		p.held.Give(p.principal, counted)
		if err != nil {
			p.mu.Lock()
			p.broken = true
			p.mu.Unlock()
		}
	}
}

func (p *Reply) flush(frames [][]byte, first bool) error {
	if first {
		StartEvents(p.w)
	}
	_ = p.rc.SetWriteDeadline(time.Now().Add(WriteTimeout)) // not every writer has one
	for _, f := range frames {
		if _, err := p.w.Write(f); err != nil {
			return err
		}
	}
	return p.rc.Flush()
}

// StartEvents sets the headers of an event stream. Setting them again is harmless.
func StartEvents(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
}

// Finish sends the answer in whichever form it has to take. An empty message ends
// a stream without one, and otherwise is a status alone. It reports whether the
// answer has left.
func (p *Reply) Finish(status int, message []byte) bool {
	p.mu.Lock()
	p.stop()
	if p.away {
		if p.begun && len(message) > 0 && p.Track != nil {
			p.Track.Add(message, true)
		}
		p.wait() // until a refusal is written
		return false
	}
	p.answered = true
	if !p.begun && (len(message) == 0 || status != http.StatusOK || !p.stream || p.plain && !p.prefer) {
		p.mu.Unlock()
		WriteJSON(p.w, p.rc, status, message)
		return true
	}
	if len(message) > 0 {
		p.push(p.event(message, true))
	}
	p.wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.broken && !p.away
}

// Leave lets go of the connection: the agent is gone, or gets no answer. What is
// sent later is kept where the agent can come back for it.
func (p *Reply) Leave() {
	p.mu.Lock()
	p.away = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.wait()
}

// Refuse ends the reply to a client whose token ended meanwhile: with 401, or with
// the end of the stream that it has become. It does nothing when cause is nil.
func (p *Reply) Refuse(cause error) bool {
	if cause == nil {
		return false
	}
	p.mu.Lock()
	p.stop()
	if p.begun || p.away || p.answered {
		p.wait()
		return true
	}
	p.away, p.writing, p.idle = true, true, make(chan struct{})
	p.mu.Unlock()
	lifetime.Refuse(p.w, cause)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing = false
	close(p.idle)
	return true
}

// stop takes nothing more; it needs mu.
func (p *Reply) stop() {
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// wait gives mu back and waits until nobody writes.
func (p *Reply) wait() {
	idle, writing := p.idle, p.writing
	p.mu.Unlock()
	if writing {
		<-idle
	}
}

// LargeBody is what an agent that does not read could make us wait with.
const LargeBody = 64 << 10

// WriteJSON answers with one JSON text, or with a status alone when message is empty.
func WriteJSON(w http.ResponseWriter, rc *http.ResponseController, status int, message []byte) {
	if len(message) > 0 {
		h := w.Header()
		h["Content-Type"] = jsonType
		h["Content-Length"] = []string{strconv.Itoa(len(message))}
	}
	if len(message) > LargeBody {
		_ = rc.SetWriteDeadline(time.Now().Add(WriteTimeout)) // not every writer has one
	}
	w.WriteHeader(status)
	_, _ = w.Write(message) // an agent that is gone does not need it
}

// jsonType is never changed.
var jsonType = []string{"application/json"}

// buffers hold answers while they are written.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// GetBuffer returns a buffer for an answer; release it.
func GetBuffer() *[]byte { return buffers.Get().(*[]byte) }

// MaxPooled keeps a few huge answers from staying in memory.
const MaxPooled = 256 << 10

// Release gives a buffer back.
func Release(buf *[]byte) {
	if cap(*buf) <= MaxPooled {
		buffers.Put(buf)
	}
}
