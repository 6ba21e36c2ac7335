package supervise

import (
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

// Throttle lets something pass at most once in limit.ServerListChanges: a client that
// hears of a changed list reads it again, which costs far more than to say that it changed.
type Throttle struct {
	mu   sync.Mutex // guards last, held
	last time.Time
	held bool // something waits for its time
}

// Pass reports whether it may pass now. If not, later is called when it may, once for
// all that were held back meanwhile.
func (t *Throttle) Pass(later func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held {
		return false
	}
	wait := limit.ServerListChanges - time.Since(t.last)
	if t.last.IsZero() || wait <= 0 {
		t.last = time.Now()
		return true
	}
	t.held = true
	time.AfterFunc(wait, later)
	return false
}

// Passed notes that what was held back is passed on now.
func (t *Throttle) Passed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.held = time.Now(), false
}

// LogPace limits the log lines about one connection: a server that comes and goes many
// times a second must not fill the disk. What was left out is counted on the next line.
type LogPace struct {
	mu      sync.Mutex // guards what follows
	since   time.Time  // when the period began
	written int        // lines in this period
	dropped int        // lines left out since the last one
}

// Next reports whether a line may be written, and how many were left out before it.
func (p *LogPace) Next() (dropped int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.since) >= time.Minute {
		p.since, p.written = now, 0
	}
	if p.written >= limit.ServerLogLines {
		p.dropped++
		return 0, false
	}
	p.written++
	dropped, p.dropped = p.dropped, 0
	return dropped, true
}
