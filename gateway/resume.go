package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// track remembers what the stream of one request has carried, so that an agent of
// revision 2025-11-25 whose connection broke can go on where it stopped.
type track struct {
	number int
	wake   chan struct{} // one place: there is something new
	of     *tracks

	mu     sync.Mutex // guards what follows
	frames [][]byte
	first  int // number of frames[0]
	size   int
	done   bool // the answer is among them
	gone   bool // nothing is remembered any more
}

// Bounds of what is remembered. Of a longer stream the beginning is forgotten; of
// many streams those that ended first are.
const (
	maxTrackBytes = 1 << 20
	maxTracks     = 64
)

// reconnect is when an agent whose stream broke should come back.
const reconnect = "1000"

// prime is the first event of a stream: it says from where to go on, and when.
func (t *track) prime() []byte {
	return []byte("id: " + t.eventID(0) + "\nretry: " + reconnect + "\ndata: \n\n")
}

func (t *track) eventID(n int) string { return strconv.Itoa(t.number) + "-" + strconv.Itoa(n) }

// add makes an event of a message and remembers it.
func (t *track) add(message []byte, last bool) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.first + len(t.frames) + 1
	frame := wire.AppendEvent(make([]byte, 0, len(message)+48), t.eventID(n), message)
	if t.gone || !t.of.hold(len(frame)) {
		t.forget(len(t.frames)) // there is no room for it, and without it the others are of no use
		t.first++
	} else {
		t.frames = append(t.frames, frame)
		t.size += len(frame)
	}
	for t.size > maxTrackBytes && len(t.frames) > 1 {
		t.forget(1)
	}
	t.done = t.done || last
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return frame
}

// forget drops the first n events; it needs mu.
func (t *track) forget(n int) {
	for _, f := range t.frames[:n] {
		t.size -= len(f)
		t.of.letGo(len(f))
	}
	t.frames = t.frames[n:]
	t.first += n
}

// discard remembers nothing from now on.
func (t *track) discard() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	t.forget(len(t.frames))
}

// since returns what came after the n-th event, and whether the stream has ended.
func (t *track) since(n int) (frames [][]byte, next int, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := min(max(n-t.first, 0), len(t.frames))
	return t.frames[from:], t.first + len(t.frames), t.done
}

func (t *track) ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done
}

// tracks are those of a session.
type tracks struct {
	held      *heldBytes // nil where nothing is counted
	principal string

	mu   sync.Mutex // guards what follows
	last int
	all  []*track
}

func (ts *tracks) hold(n int) bool { return ts.held == nil || ts.held.take(ts.principal, n) }

func (ts *tracks) letGo(n int) {
	if ts.held != nil {
		ts.held.give(ts.principal, n)
	}
}

// discard forgets all of them.
func (ts *tracks) discard() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.all {
		t.discard()
	}
	ts.all = nil
}

// begin makes a track. Nil: the agent's revision has none, or too many streams of
// the session are under way.
func (ts *tracks) begin(version string) *track {
	if version < mcp.V20251125 {
		return nil
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.all) >= maxTracks {
		i := 0
		for i < len(ts.all) && !ts.all[i].ended() {
			i++
		}
		if i == len(ts.all) {
			return nil
		}
		ts.all[i].discard()
		ts.all = append(ts.all[:i:i], ts.all[i+1:]...)
	}
	ts.last++
	t := &track{number: ts.last, wake: make(chan struct{}, 1), of: ts}
	ts.all = append(ts.all, t)
	return t
}

// end forgets a track whose answer has arrived.
func (ts *tracks) end(t *track) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for i, x := range ts.all {
		if x == t {
			t.discard()
			ts.all = append(ts.all[:i:i], ts.all[i+1:]...)
			return
		}
	}
}

// find returns the track of an event and its number.
func (ts *tracks) find(eventID string) (*track, int) {
	stream, event, _ := strings.Cut(eventID, "-")
	number, err1 := strconv.Atoi(stream)
	n, err2 := strconv.Atoi(event)
	if err1 != nil || err2 != nil {
		return nil, 0
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.all {
		if t.number == number {
			return t, n
		}
	}
	return nil, 0
}

// carryOn carries on the stream that a broken connection cut off.
func (g *Gateway) carryOn(w http.ResponseWriter, r *http.Request, s *session, t *track, n int) {
	rc := http.NewResponseController(w)
	startStream(w)
	w.WriteHeader(http.StatusOK)
	alive := time.NewTicker(g.opt.KeepAlive)
	defer alive.Stop()
	write := func(frame []byte) error {
		_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has one
		if _, err := w.Write(frame); err != nil {
			return err
		}
		return rc.Flush()
	}
	for err := write(comment); err == nil; {
		frames, next, done := t.since(n)
		for _, f := range frames {
			if err = write(f); err != nil {
				return
			}
		}
		n = next
		if done {
			s.tracks.end(t)
			return
		}
		select {
		case <-t.wake:
		case <-alive.C:
			err = write(comment)
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}
