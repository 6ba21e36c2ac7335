package supervise

import (
	"slices"
	"sync"
	"time"
)

// Restarts bounds restarts: more than max within a sliding window eject the server, for
// reset or until it is cleared. The restarts of one outage count as one as soon as the
// server works again, so that a short outage does not lead to an ejection by the next
// crash; they do not leave the window before that.
type Restarts struct {
	Max    int
	Window time.Duration
	Reset  time.Duration // how long an ejection lasts; 0: until it is cleared

	mu       sync.Mutex  // guards what follows
	restarts []time.Time // one for each time that the server failed and worked again
	streak   int         // restarts since the server last worked
	last     time.Time   // the last of them
	starts   []time.Time // the last starts of a process, at most limit of them
	ejected  time.Time   // zero when it is not
}

// minute is the period for which starts are limited, where the window is not shorter.
const minute = time.Minute

// Spend charges one restart and reports whether that ejected the server. A probe of an
// open circuit is charged and never ejects.
func (b *Restarts) Spend(probe bool) (ejected bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ejected.IsZero() {
		return false
	}
	b.streak, b.last = b.streak+1, time.Now()
	if probe || b.count() <= b.Max {
		return false
	}
	b.ejected = b.last
	return true
}

// count is how many restarts count now. It needs mu.
func (b *Restarts) count() int {
	old := time.Now().Add(-b.Window)
	b.restarts = slices.DeleteFunc(b.restarts, func(t time.Time) bool { return !t.After(old) })
	return max(b.streak, len(b.restarts)+min(b.streak, 1))
}

// Worked notes that the server answered.
func (b *Restarts) Worked() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.streak == 0 || !b.ejected.IsZero() {
		return
	}
	if len(b.restarts) > b.Max { // after probes, which do not eject
		b.restarts = slices.Delete(b.restarts, 0, 1)
	}
	b.restarts, b.streak = append(b.restarts, b.last), 0
}

// Started notes that a process is started now.
func (b *Restarts) Started() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.starts) >= b.limit() {
		b.starts = slices.Delete(b.starts, 0, len(b.starts)-b.limit()+1)
	}
	b.starts = append(b.starts, time.Now())
}

// limit is how many processes may be started within a period while nothing works.
func (b *Restarts) limit() int { return max(b.Max, 1) }

// Wait is how long a probe has to wait for its start.
func (b *Restarts) Wait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.starts) < b.limit() {
		return 0
	}
	return time.Until(b.starts[0].Add(min(b.Window, minute)))
}

// Clear forgets all restarts and ends an ejection.
func (b *Restarts) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
}

func (b *Restarts) forget() {
	b.restarts, b.starts, b.streak, b.ejected = nil, nil, 0, time.Time{}
}

// Used returns how many restarts count now.
func (b *Restarts) Used() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ejected.IsZero() {
		return b.Max + 1 // what led to the ejection stays visible
	}
	return b.count()
}

// IsEjected reports whether the server is ejected now.
func (b *Restarts) IsEjected() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.ejected.IsZero() && !b.over()
}

// over reports whether an ejection has lasted long enough; it needs mu.
func (b *Restarts) over() bool {
	return b.Reset > 0 && time.Since(b.ejected) >= b.Reset
}

// Left is how much longer an ejection lasts; 0 when that is not known.
func (b *Restarts) Left() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ejected.IsZero() || b.Reset <= 0 {
		return 0
	}
	return max(time.Until(b.ejected.Add(b.Reset)), 0)
}

// Check is isEjected for somebody who wants to connect. ended is true once after an
// ejection ended by itself; the restarts that led to it are forgotten then.
func (b *Restarts) Check() (ejected, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ejected.IsZero():
		return false, false
	case !b.over():
		return true, false
	}
	b.forget()
	return false, true
}
