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
	starts   []time.Time // the last starts of a process that failed, at most limit of them
	running  time.Time   // the last start, while it is not known whether that process works
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

// Started notes that a process is started now. The one before it failed, unless
// ForgetStart was called for it.
func (b *Restarts) Started() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.starts = b.failed()
	if n := len(b.starts) - b.limit(); n > 0 {
		b.starts = slices.Delete(b.starts, 0, n)
	}
	b.running = time.Now()
}

// ForgetStart notes that the process that was started last answers, or that usher has
// stopped it: its start does not count.
func (b *Restarts) ForgetStart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = time.Time{}
}

// failed returns the starts that count. It needs mu.
func (b *Restarts) failed() []time.Time {
	if b.running.IsZero() {
		return b.starts
	}
	return append(b.starts, b.running)
}

// limit is how many processes may be started within a period while nothing works.
func (b *Restarts) limit() int { return max(b.Max, 1) }

// Wait is how long it takes until the limit has room for n more starts. Where n is more
// than the limit, that is when no start counts any longer.
func (b *Restarts) Wait(n int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wait(n)
}

// wait is Wait; it needs mu.
func (b *Restarts) wait(n int) time.Duration {
	failed := b.failed()
	last := min(len(failed)-b.limit()+n, len(failed)) - 1 // that must leave the period
	if last < 0 {
		return 0
	}
	return max(time.Until(failed[last].Add(min(b.Window, minute))), 0)
}

// WaitStart is how long the next start has to wait. While the circuit is closed, the
// start that follows the last restart of the budget does not wait: it works, or the
// server is ejected.
func (b *Restarts) WaitStart(closed bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if closed && b.streak >= b.Max {
		return 0
	}
	return b.wait(1)
}

// Clear forgets all restarts and ends an ejection.
func (b *Restarts) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
}

func (b *Restarts) forget() {
	b.restarts, b.starts, b.streak = nil, nil, 0
	b.running, b.ejected = time.Time{}, time.Time{}
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
