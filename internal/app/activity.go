package app

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
)

// Bounds of what is remembered of calls.
const (
	recentCalls  = 256
	recentWindow = 60   // seconds
	maxMeters    = 4096 // accounts whose last minute is remembered
)

// activity remembers when each account was last called and, once somebody watches,
// the newest calls and how long those of the last minute took. All of it is bounded,
// and taking a call in costs well below a microsecond.
type activity struct {
	watched atomic.Bool // whether more than the time of the last call is wanted
	count   atomic.Uint64

	mu     sync.Mutex // guards what follows
	meters map[host.Key]*meter
	ring   []recentCall
	next   int // where the next call goes, once the ring is full
}

// recentCall is a call that ended. It has the shape of the arguments, no values.
type recentCall struct {
	number  uint64
	key     host.Key
	tool    string
	outcome string
	began   time.Time
	took    time.Duration
	bytes   int
	problem string
	shape   []byte
}

// meter is how busy one account was.
type meter struct {
	last    time.Time
	seconds *[recentWindow]second // nil while nobody watches
}

// second is what happened in one second.
type second struct {
	at            int64 // which, in Unix time
	calls, failed int32
	worst         time.Duration
}

// note takes in a call that ended. One that policy refused did not reach the
// server.
func (a *activity) note(f policy.Finished) {
	refused := f.Outcome == policy.OutcomeDenied || f.Outcome == policy.OutcomeBudget || f.Outcome == policy.OutcomeChanged
	watched := a.watched.Load()
	var room [256]byte
	shape := room[:0]
	if watched {
		shape = f.Shape(shape)
	}
	k := callerKey(f.Key)
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
		m.seconds = new([recentWindow]second)
	}
	at := f.Began.Add(f.Took).Unix()
	s := &m.seconds[at%recentWindow]
	if s.at != at {
		*s = second{at: at}
	}
	s.calls++
	s.worst = max(s.worst, f.Took)
	if f.Err != nil || f.Outcome == policy.OutcomeToolError {
		s.failed++
	}
}

// remember puts a call into the ring; the slots and their buffers are used again.
// It needs mu.
func (a *activity) remember(k host.Key, f policy.Finished, shape []byte) {
	if len(a.ring) < recentCalls {
		a.ring = append(a.ring, recentCall{})
		a.next = len(a.ring) - 1
	}
	c := &a.ring[a.next]
	*c = recentCall{
		number: a.count.Add(1), key: k, tool: f.Tool, outcome: f.Outcome, began: f.Began, took: f.Took, bytes: f.Bytes,
		shape: append(c.shape[:0], shape...),
	}
	if f.Err != nil {
		c.problem = Message(f.Err)
	}
	a.next = (a.next + 1) % recentCalls
}

// at is when an account was last called; zero when it was not.
func (a *activity) at(k host.Key) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := a.meters[callerKey(k)]; m != nil {
		return m.last
	}
	return time.Time{}
}

// lastMinute is what happened in each of the last seconds, oldest first; nil when
// nothing did.
func (a *activity) lastMinute(k host.Key, now time.Time) []second {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.meters[callerKey(k)]
	if m == nil || m.seconds == nil || now.Sub(m.last) > 2*recentWindow*time.Second {
		return nil
	}
	out := make([]second, recentWindow)
	for i := range out {
		at := now.Unix() - recentWindow + 1 + int64(i)
		if s := m.seconds[at%recentWindow]; s.at == at {
			out[i] = s
		}
		out[i].at = at
	}
	return out
}

// recent returns the newest calls first.
func (a *activity) recent() []recentCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]recentCall, 0, len(a.ring))
	for i := range a.ring {
		c := a.ring[(a.next-1-i+2*len(a.ring))%len(a.ring)]
		c.shape = append([]byte(nil), c.shape...) // the slot is used again
		out = append(out, c)
	}
	return out
}

// callerKey is the account, whatever lane a call took.
func callerKey(k host.Key) host.Key {
	if k.Principal == "" {
		k.Principal = host.Local
	}
	k.Lane = ""
	return k
}
