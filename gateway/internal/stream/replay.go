package stream

import (
	"strconv"
	"strings"
	"sync"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// Replay remembers what the stream of one request has carried, so that an agent of
// revision 2025-11-25 whose connection broke can go on where it stopped.
type Replay struct {
	number int
	Wake   chan struct{} // one place: there is something new
	of     *Replays

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
func (t *Replay) prime() []byte {
	return []byte("id: " + t.eventID(0) + "\nretry: " + reconnect + "\ndata: \n\n")
}

func (t *Replay) eventID(n int) string { return strconv.Itoa(t.number) + "-" + strconv.Itoa(n) }

// Add makes an event of a message and remembers it.
func (t *Replay) Add(message []byte, last bool) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.first + len(t.frames) + 1
	frame := wire.AppendEvent(make([]byte, 0, len(message)+48), t.eventID(n), message)
	if t.gone || !t.of.reserve(len(frame)) {
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
	case t.Wake <- struct{}{}:
	default:
	}
	return frame
}

// forget drops the first n events; it needs mu.
func (t *Replay) forget(n int) {
	for _, f := range t.frames[:n] {
		t.size -= len(f)
		t.of.release(len(f))
	}
	t.frames = t.frames[n:]
	t.first += n
}

// discard remembers nothing from now on.
func (t *Replay) discard() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	t.forget(len(t.frames))
}

// Since returns what came after the n-th event, and whether the stream has ended.
func (t *Replay) Since(n int) (frames [][]byte, next int, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := min(max(n-t.first, 0), len(t.frames))
	return t.frames[from:], t.first + len(t.frames), t.done
}

func (t *Replay) ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done
}

// Replays are those of a session.
type Replays struct {
	held      *ByteQuota // nil where nothing is counted
	principal string

	mu   sync.Mutex // guards what follows
	last int
	all  []*Replay
}

// Init sets where the bytes are counted, and for whom.
func (ts *Replays) Init(held *ByteQuota, principal string) { ts.held, ts.principal = held, principal }

func (ts *Replays) reserve(n int) bool { return ts.held == nil || ts.held.Take(ts.principal, n) }

func (ts *Replays) release(n int) {
	if ts.held != nil {
		ts.held.Give(ts.principal, n)
	}
}

// Discard forgets all of them.
func (ts *Replays) Discard() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.all {
		t.discard()
	}
	ts.all = nil
}

// Begin makes a track. Nil: the agent's revision has none, or too many streams of
// the session are in flight.
func (ts *Replays) Begin(version string) *Replay {
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
	t := &Replay{number: ts.last, Wake: make(chan struct{}, 1), of: ts}
	ts.all = append(ts.all, t)
	return t
}

// End forgets a track whose answer has arrived.
func (ts *Replays) End(t *Replay) {
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

// Find returns the track of an event and its number.
func (ts *Replays) Find(eventID string) (*Replay, int) {
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
