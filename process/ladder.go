package process

import (
	"syscall"
	"time"
)

// When the host is dead nobody waits for a tidy end, and nothing may be left five
// seconds later.
const (
	orphanGrace = 500 * time.Millisecond
	orphanKill  = 1500 * time.Millisecond
)

// SIGKILL is repeated, ever more slowly, until all is gone: a process may have
// forked between the look at the process table and the signal.
const (
	killPause    = 5 * time.Millisecond
	maxKillPause = 250 * time.Millisecond
)

// tree is a child and everything it started.
type tree interface {
	// state says whether the child itself has ended, and whether nothing of the
	// tree is left either.
	state() (ended, empty bool)
	// signalGroup signals the child's process group, signalAll every process of
	// the tree.
	signalGroup(syscall.Signal)
	signalAll(syscall.Signal)
}

type event int

const (
	eventChanged  event = iota // look at the tree again
	eventStop                  // standard input is closed: begin
	eventOrphaned              // the host is dead: begin, and hurry
	eventKill                  // go to the end
)

type phase int

const (
	running phase = iota
	closing       // standard input is closed
	terming       // SIGTERM was sent
	killing       // SIGKILL is being sent
)

// ladder walks a tree from running to gone. It runs in the shim, or in the host
// where there is none.
type ladder struct {
	tree        tree
	grace, kill time.Duration
	// poll is how often to look at a tree that lost its root, when nothing
	// reports its changes. Zero means that eventChanged does.
	poll time.Duration
	// giveUp ends the ladder that long after the first SIGKILL. Zero means never.
	giveUp time.Duration

	phase    phase
	deadline time.Time // of the phase, when it has one
	killedAt time.Time
	pause    time.Duration
	ended    bool
}

// run returns true when nothing is left, false when it gave up.
func (l *ladder) run(events <-chan event) bool {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		ended, empty := l.tree.state()
		if ended && empty {
			return true
		}
		if ended && !l.ended {
			l.ended = true
			l.leftovers()
		}
		if l.phase == killing && l.giveUp > 0 && time.Since(l.killedAt) > l.giveUp {
			return false
		}
		l.arm(timer)
		select {
		case ev := <-events:
			l.handle(ev)
		case <-timer.C:
			l.expire()
		}
	}
}

// leftovers begins when the child ended before the rest of its tree.
func (l *ladder) leftovers() {
	if l.phase == killing {
		return
	}
	l.tree.signalAll(syscall.SIGTERM)
	if l.phase < terming {
		l.enter(terming, l.kill)
	}
}

func (l *ladder) handle(ev event) {
	switch ev {
	case eventStop:
		if l.phase == running {
			l.enter(closing, l.grace)
		}
	case eventOrphaned:
		l.grace, l.kill = min(l.grace, orphanGrace), min(l.kill, orphanKill)
		switch l.phase {
		case running:
			l.enter(closing, l.grace)
		case closing:
			l.enter(closing, min(time.Until(l.deadline), l.grace))
		case terming:
			l.enter(terming, min(time.Until(l.deadline), l.kill))
		}
	case eventKill:
		if l.phase < killing {
			l.startKilling()
		}
	}
}

// expire moves on when the time of the phase is over.
func (l *ladder) expire() {
	if l.phase == running || time.Until(l.deadline) > 0 {
		return
	}
	switch l.phase {
	case closing:
		l.tree.signalGroup(syscall.SIGTERM)
		l.enter(terming, l.kill)
	case terming:
		l.startKilling()
	case killing:
		l.tree.signalAll(syscall.SIGKILL)
		l.pause = min(l.pause*2, maxKillPause)
		l.enter(killing, l.pause)
	}
}

func (l *ladder) startKilling() {
	l.killedAt = time.Now()
	l.pause = killPause
	l.tree.signalAll(syscall.SIGKILL)
	l.enter(killing, l.pause)
}

func (l *ladder) enter(p phase, d time.Duration) {
	l.phase = p
	l.deadline = time.Now().Add(d)
}

// arm sets the timer to the next moment something has to be done without an event.
func (l *ladder) arm(timer *time.Timer) {
	timer.Stop()
	if l.phase == running {
		return
	}
	wait := time.Until(l.deadline)
	if l.ended && l.poll > 0 {
		wait = min(wait, l.poll)
	}
	timer.Reset(max(wait, 0))
}
