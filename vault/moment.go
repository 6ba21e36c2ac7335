package vault

import "time"

// Moment is one instant on every clock of this process. No single clock is enough to
// tell how long something took: the wall clock is set by people and by time servers,
// the steady clock stands still while the machine sleeps.
type Moment struct {
	// Wall is what a calendar shows. It may jump either way.
	Wall time.Time
	// Steady never jumps, and on most systems stands still while the machine sleeps.
	// Only its monotonic reading counts.
	Steady time.Time
	// Boot is the time since the machine was started, sleep included; 0 where the
	// system has no such clock.
	Boot time.Duration
}

// Clock reads all clocks. Tests replace [Now] by one that they can step.
type Clock func() Moment

// Now reads the clocks of the system.
func Now() Moment {
	now := time.Now()
	return Moment{Wall: now.Round(0), Steady: now, Boot: bootTime()}
}

// AtMost is the longest time that may have passed since an earlier moment: what the
// fastest of the clocks says. Callers that must prove that little time passed use it.
func (m Moment) AtMost(since Moment) time.Duration {
	return max(m.AtLeast(since), m.Wall.Sub(since.Wall), m.Boot-since.Boot)
}

// AtLeast is how long this process has certainly had the chance to see something: the
// time on the steady clock.
func (m Moment) AtLeast(since Moment) time.Duration { return m.Steady.Sub(since.Steady) }
