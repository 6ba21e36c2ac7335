package upstream

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/retry"
)

// How fast one server is listened to. Answers of ordinary size are not counted at
// all; what is left is far above what a healthy server does, and far below what
// would keep a core busy.
const (
	bulkFree     = 1 << 20              // bytes of a message that are read at once
	bulkBurst    = 4 << 20              // bytes beyond them that may come at once …
	bulkRate     = limit.ServerBytes    // … and per second after that
	chatterBurst = 2000                 // messages that answer nothing: notifications, garbage …
	chatterRate  = limit.ServerMessages // … and per second after that
	shortestNap  = 10 * time.Millisecond
	longestNap   = 100 * time.Millisecond // an end of the caller's is noticed after it
)

// Pace limits how fast usher reads from a server: a server that floods is read more
// slowly, so that the flood waits in the server and does not use up CPU time here.
// Nothing is lost. A Pace belongs to a server and outlives its connections.
type Pace struct{ bulk, chatter bucket }

// NewPace returns a pace with nothing used up.
func NewPace() *Pace {
	return &Pace{bulk: bucket{rate: bulkRate, burst: bulkBurst}, chatter: bucket{rate: chatterRate, burst: chatterBurst}}
}

// stray counts a message that answers nothing, and waits when there were too many.
func (c *Conn) stray() { c.opt.Pace.chatter.spend(c.life, 1) }

// bucket fills with what was used and empties at its rate.
type bucket struct {
	rate, burst float64

	mu    sync.Mutex // guards level, at
	level float64
	at    time.Time
}

// spend uses n and, when that was too much, naps until the level has sunk or ctx
// ends.
func (b *bucket) spend(ctx context.Context, n int) {
	if over := b.add(float64(n)); over > 0 {
		nap := time.Duration(over / b.rate * float64(time.Second))
		_ = retry.Sleep(ctx, min(max(shortestNap, nap), longestNap)) // the reader notices the end of ctx itself
	}
}

// add returns by how much the burst is exceeded.
func (b *bucket) add(n float64) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.level = max(0, b.level-now.Sub(b.at).Seconds()*b.rate) + n
	b.at = now
	return b.level - b.burst
}

// pacedReader slows the reading of large messages.
type pacedReader struct {
	ctx  context.Context
	r    io.Reader
	pace *Pace
	read int // bytes since the last message ended
}

func (c *Conn) paced(ctx context.Context, r io.Reader) *pacedReader {
	return &pacedReader{ctx: ctx, r: r, pace: c.opt.Pace}
}

func (r *pacedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if r.read += n; r.read > bulkFree {
		r.pace.bulk.spend(r.ctx, min(n, r.read-bulkFree))
	}
	return n, err
}

// next says that a message has ended.
func (r *pacedReader) next() { r.read = 0 }
