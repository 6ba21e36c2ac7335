package supervise

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"pgregory.net/rapid"
)

func newBreaker(threshold int, reset time.Duration) *Breaker {
	var b Breaker
	b.Init(threshold, reset)
	return &b
}

func TestBreakerLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(2, 30*time.Second)
		fail := func() bool {
			tk, _, ok := b.Allow()
			if !ok {
				t.Fatal("not admitted")
			}
			return b.Done(tk, Failure) == Open
		}
		if fail() || !fail() {
			t.Fatal("opens at the second failure in a row, not before")
		}
		for round, pause := range []time.Duration{30, 60, 120, 240, 480, 600, 600} {
			pause *= time.Second
			if _, wait, ok := b.Allow(); ok || wait != pause {
				t.Fatalf("round %d: admitted %v, wait %v, want %v", round, ok, wait, pause)
			}
			time.Sleep(pause)
			if state, _ := b.Look(); state != HalfOpen {
				t.Fatalf("round %d: %s after the pause", round, state)
			}
			if !fail() {
				t.Fatalf("round %d: a failed probe must open again", round)
			}
		}
		time.Sleep(MaxPause)
		tk, _, _ := b.Allow()
		b.Done(tk, Success)
		if state, failures := b.Look(); state != Closed || failures != 0 {
			t.Fatalf("after a good probe: %s, %d failures", state, failures)
		}
		fail()
		fail()
		if _, wait, _ := b.Allow(); wait != 30*time.Second {
			t.Errorf("the pause is %v after a success, want the first one again", wait)
		}
	})
}

func TestBreakerProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(1, time.Second)
		late, _, _ := b.Allow()
		first, _, _ := b.Allow()
		b.Done(first, Failure)
		time.Sleep(time.Second)
		Probe, _, ok := b.Allow()
		if !ok || !Probe.Probe {
			t.Fatal("no probe")
		}
		if _, _, ok := b.Allow(); ok {
			t.Fatal("a second probe beside the first")
		}
		b.Done(late, Success) // news of an older generation
		if state, _ := b.Look(); state != HalfOpen {
			t.Fatalf("a late success made it %s", state)
		}
		b.Done(Probe, Neither) // the prober left: somebody else may try
		Probe, _, ok = b.Allow()
		if !ok {
			t.Fatal("no probe after one that said nothing")
		}
		b.Done(Probe, Success)
		b.Done(Probe, Failure) // handed back twice
		if state, failures := b.Look(); state != Closed || failures != 0 {
			t.Errorf("%s with %d failures", state, failures)
		}
		b.Clear()
	})
}

// model is the breaker in the simplest words.
type breakerModel struct {
	state    Circuit
	failures int
	openedAt time.Time
	openings int // in a row, without success
	Probe    bool
}

func (m *breakerModel) pause() time.Duration {
	p := 10 * time.Second
	for range m.openings - 1 {
		p = min(p*2, MaxPause)
	}
	return p
}

func (m *breakerModel) Allow(now time.Time) bool {
	if m.state == Open && now.Sub(m.openedAt) >= m.pause() {
		m.state, m.Probe = HalfOpen, false
	}
	if m.state == Open || m.state == HalfOpen && m.Probe {
		return false
	}
	m.Probe = m.state == HalfOpen
	return true
}

func (m *breakerModel) Done(v Verdict, now time.Time) {
	m.Probe = false
	switch v {
	case Success:
		*m = breakerModel{state: Closed}
	case Failure:
		if m.failures++; m.state == HalfOpen || m.failures >= 3 {
			m.state, m.openedAt = Open, now
			m.openings++
		}
	}
}

func TestBreakerModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 120).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			b, m := newBreaker(3, 10*time.Second), &breakerModel{state: Closed}
			for i, step := range steps {
				if step >= 3 {
					time.Sleep([]time.Duration{4 * time.Second, 25 * time.Second}[step-3])
				} else {
					tk, _, ok := b.Allow()
					if want := m.Allow(time.Now()); ok != want {
						t.Fatalf("step %d of %v: admitted %v, the model says %v", i, steps, ok, want)
					} else if ok {
						b.Done(tk, Verdict(step))
						m.Done(Verdict(step), time.Now())
					}
				}
				if m.state == Open && time.Since(m.openedAt) >= m.pause() {
					m.state, m.Probe = HalfOpen, false
				}
				if state, failures := b.Look(); state != m.state || failures != m.failures {
					t.Fatalf("step %d of %v: %s/%d, the model says %s/%d", i, steps, state, failures, m.state, m.failures)
				}
			}
		})
	})
}

// Where both mean the same, that is until a probe fails, ours and gobreaker agree,
// also about results that come late.
func TestBreakerLikeGobreaker(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 150).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			theirs := gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
				MaxRequests: 1, Timeout: 10 * time.Second,
				ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 3 },
			})
			ours := newBreaker(3, 10*time.Second)
			type flight struct {
				t    Ticket
				done func(error)
			}
			var out []flight
			for i, step := range steps {
				switch {
				case step < 5:
					tk, _, ok := ours.Allow()
					done, err := theirs.Allow()
					if ok != (err == nil) {
						t.Fatalf("step %d of %v: ours %v, theirs %v", i, steps, ok, err)
					}
					if ok {
						out = append(out, flight{tk, done})
					}
				case step < 9 && len(out) > 0:
					f := out[(step*7+i)%len(out)]
					out = append(out[:(step*7+i)%len(out)], out[(step*7+i)%len(out)+1:]...)
					if step < 7 {
						ours.Done(f.t, Success)
						f.done(nil)
						break
					}
					if state, _ := ours.Look(); state == HalfOpen && f.t.Probe {
						return // from here on ours waits longer
					}
					ours.Done(f.t, Failure)
					f.done(errors.New("reset"))
				case step == 9:
					time.Sleep(11 * time.Second)
				}
				if state, _ := ours.Look(); string(state) != map[gobreaker.State]string{
					gobreaker.StateClosed: "closed", gobreaker.StateOpen: "open", gobreaker.StateHalfOpen: "half_open",
				}[theirs.State()] {
					t.Fatalf("step %d of %v: ours %s, theirs %s", i, steps, state, theirs.State())
				}
			}
		})
	})
}

// A circuit that is opened early lets a probe through at the end of that wait, and its
// pause after failures stays what it was.
func TestBreakerTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Breaker
		b.Init(3, 30*time.Second)
		before, _, _ := b.Allow()
		if !b.Trip(5*time.Second) || b.Trip(time.Hour) {
			t.Error("the circuit opens once")
		}
		if b.Done(before, Success) != "" || b.Left() != 5*time.Second {
			t.Errorf("open for %v; a result from before counts", b.Left())
		}
		time.Sleep(5 * time.Second)
		probe, _, ok := b.Allow()
		if !ok || !probe.Probe || b.Done(probe, Failure) != Open || b.Left() != 30*time.Second {
			t.Errorf("admitted %v, probe %v, then open for %v", ok, probe.Probe, b.Left())
		}
	})
}
