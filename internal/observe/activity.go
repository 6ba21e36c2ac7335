// Package observe remembers what calls did: the newest ones for the console, each one in
// the audit log, and as events for the embedding program.
//
//	var calls observe.Activity
//	calls.Watch()                    // keep more than the time of the last call
//	calls.Add(finished)              // for every call that ended; below a microsecond
//	recent := calls.Recent()
//
// All of it is bounded. It keeps the shape of arguments, never their values.
package observe

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/advice"
	"github.com/usher-mcp/usher/policy"
)

// Limits of what is kept.
const (
	recentCalls  = 256
	recentWindow = 60   // seconds
	maxMeters    = 4096 // accounts whose last minute is remembered
)

// Activity remembers when each account was last called and, after Watch, the newest
// calls and how long those of the last minute took. The zero value is ready to use.
type Activity struct {
	watched atomic.Bool // whether more than the time of the last call is kept
	count   atomic.Uint64

	mu     sync.Mutex // guards what follows
	meters map[host.Key]*meter
	ring   []Call
	next   int // where the next call goes, once the ring is full
}

// Call is a call that ended. It has the shape of the arguments, no values.
type Call struct {
	Number  uint64 // grows with every call
	Key     host.Key
	Tool    string
	Outcome string
	Began   time.Time
	Took    time.Duration
	Bytes   int
	Problem string
	Shape   []byte // names and kinds of the arguments
}

// meter is how busy one account was.
type meter struct {
	last    time.Time
	seconds *[recentWindow]Second // nil before Watch
}

// Second counts the calls that ended in one second.
type Second struct {
	at            int64 // which, in Unix time
	Calls, Failed int
	Worst         time.Duration
}

// Watch makes Add keep more than the time of the last call.
func (a *Activity) Watch() { a.watched.Store(true) }

// Add records a call that ended. A call that policy refused did not reach the server.
func (a *Activity) Add(f policy.Finished) {
	refused := f.Outcome == policy.OutcomeDenied || f.Outcome == policy.OutcomeBudget || f.Outcome == policy.OutcomeChanged
	watched := a.watched.Load()
	var room [256]byte
	shape := room[:0]
	if watched {
		shape = f.Shape(shape)
	}
	k := f.Key.Shared()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !refused {
		m := a.meters[k]
		if m == nil {
			if a.meters == nil {
				a.meters = map[host.Key]*meter{}
			}
			m = &meter{}
			a.meters[k] = m
		}
		m.last = f.Began
		if watched && (m.seconds != nil || len(a.meters) <= maxMeters) {
			m.add(f)
		}
	}
	if watched {
		a.remember(k, f, shape)
	}
}

func (m *meter) add(f policy.Finished) {
	if m.seconds == nil {
		m.seconds = new([recentWindow]Second)
	}
	at := f.Began.Add(f.Took).Unix()
	s := &m.seconds[at%recentWindow]
	if s.at != at {
		*s = Second{at: at}
	}
	s.Calls++
	s.Worst = max(s.Worst, f.Took)
	if f.Err != nil || f.Outcome == policy.OutcomeToolError {
		s.Failed++
	}
}

// remember puts a call into the ring; the slots and their buffers are used again.
// It needs mu.
func (a *Activity) remember(k host.Key, f policy.Finished, shape []byte) {
	if len(a.ring) < recentCalls {
		a.ring = append(a.ring, Call{})
		a.next = len(a.ring) - 1
	}
	c := &a.ring[a.next]
	*c = Call{
		Number: a.count.Add(1), Key: k, Tool: f.Tool, Outcome: f.Outcome, Began: f.Began, Took: f.Took, Bytes: f.Bytes,
		Shape: append(c.Shape[:0], shape...),
	}
	if f.Err != nil {
		c.Problem = advice.Message(f.Err)
	}
	a.next = (a.next + 1) % recentCalls
}

// LastCall is when an account was last called; zero when it was not.
func (a *Activity) LastCall(k host.Key) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := a.meters[k.Shared()]; m != nil {
		return m.last
	}
	return time.Time{}
}

// LastMinute counts the calls of each of the last 60 seconds, oldest first; nil when
// there were none.
func (a *Activity) LastMinute(k host.Key, now time.Time) []Second {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.meters[k.Shared()]
	if m == nil || m.seconds == nil || now.Sub(m.last) > 2*recentWindow*time.Second {
		return nil
	}
	out := make([]Second, recentWindow)
	for i := range out {
		at := now.Unix() - recentWindow + 1 + int64(i)
		if s := m.seconds[at%recentWindow]; s.at == at {
			out[i] = s
		}
		out[i].at = at
	}
	return out
}

// Recent returns the newest calls first.
func (a *Activity) Recent() []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]Call, 0, len(a.ring))
	for i := range a.ring {
		c := a.ring[(a.next-1-i+2*len(a.ring))%len(a.ring)]
		c.Shape = append([]byte(nil), c.Shape...) // the slot is used again
		out = append(out, c)
	}
	return out
}
