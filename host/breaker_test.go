package host

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"pgregory.net/rapid"
)

func newBreaker(threshold int, reset time.Duration) *breaker {
	var b breaker
	b.init(threshold, reset)
	return &b
}

func TestBreakerLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(2, 30*time.Second)
		fail := func() bool {
			tk, _, ok := b.allow()
			if !ok {
				t.Fatal("not admitted")
			}
			return b.done(tk, failure) == open
		}
		if fail() || !fail() {
			t.Fatal("opens at the second failure in a row, not before")
		}
		for round, pause := range []time.Duration{30, 60, 120, 240, 480, 600, 600} {
			pause *= time.Second
			if _, wait, ok := b.allow(); ok || wait != pause {
				t.Fatalf("round %d: admitted %v, wait %v, want %v", round, ok, wait, pause)
			}
			time.Sleep(pause)
			if state, _ := b.look(); state != halfOpen {
				t.Fatalf("round %d: %s after the pause", round, state)
			}
			if !fail() {
				t.Fatalf("round %d: a failed probe must open again", round)
			}
		}
		time.Sleep(maxPause)
		tk, _, _ := b.allow()
		b.done(tk, success)
		if state, failures := b.look(); state != closed || failures != 0 {
			t.Fatalf("after a good probe: %s, %d failures", state, failures)
		}
		fail()
		fail()
		if _, wait, _ := b.allow(); wait != 30*time.Second {
			t.Errorf("the pause is %v after a success, want the first one again", wait)
		}
	})
}

func TestBreakerProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(1, time.Second)
		late, _, _ := b.allow()
		first, _, _ := b.allow()
		b.done(first, failure)
		time.Sleep(time.Second)
		probe, _, ok := b.allow()
		if !ok || !probe.probe {
			t.Fatal("no probe")
		}
		if _, _, ok := b.allow(); ok {
			t.Fatal("a second probe beside the first")
		}
		b.done(late, success) // news of an older generation
		if state, _ := b.look(); state != halfOpen {
			t.Fatalf("a late success made it %s", state)
		}
		b.done(probe, neither) // the prober left: somebody else may try
		probe, _, ok = b.allow()
		if !ok {
			t.Fatal("no probe after one that said nothing")
		}
		b.done(probe, success)
		b.done(probe, failure) // handed back twice
		if state, failures := b.look(); state != closed || failures != 0 {
			t.Errorf("%s with %d failures", state, failures)
		}
		b.clear()
	})
}

// model is the breaker in the simplest words.
type breakerModel struct {
	state    circuit
	failures int
	openedAt time.Time
	openings int // in a row, without success
	probe    bool
}

func (m *breakerModel) pause() time.Duration {
	p := 10 * time.Second
	for range m.openings - 1 {
		p = min(p*2, maxPause)
	}
	return p
}

func (m *breakerModel) allow(now time.Time) bool {
	if m.state == open && now.Sub(m.openedAt) >= m.pause() {
		m.state, m.probe = halfOpen, false
	}
	if m.state == open || m.state == halfOpen && m.probe {
		return false
	}
	m.probe = m.state == halfOpen
	return true
}

func (m *breakerModel) done(v verdict, now time.Time) {
	m.probe = false
	switch v {
	case success:
		*m = breakerModel{state: closed}
	case failure:
		if m.failures++; m.state == halfOpen || m.failures >= 3 {
			m.state, m.openedAt = open, now
			m.openings++
		}
	}
}

func TestBreakerModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 120).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			b, m := newBreaker(3, 10*time.Second), &breakerModel{state: closed}
			for i, step := range steps {
				if step >= 3 {
					time.Sleep([]time.Duration{4 * time.Second, 25 * time.Second}[step-3])
				} else {
					tk, _, ok := b.allow()
					if want := m.allow(time.Now()); ok != want {
						t.Fatalf("step %d of %v: admitted %v, the model says %v", i, steps, ok, want)
					} else if ok {
						b.done(tk, verdict(step))
						m.done(verdict(step), time.Now())
					}
				}
				if m.state == open && time.Since(m.openedAt) >= m.pause() {
					m.state, m.probe = halfOpen, false
				}
				if state, failures := b.look(); state != m.state || failures != m.failures {
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
				t    ticket
				done func(error)
			}
			var out []flight
			for i, step := range steps {
				switch {
				case step < 5:
					tk, _, ok := ours.allow()
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
						ours.done(f.t, success)
						f.done(nil)
						break
					}
					if state, _ := ours.look(); state == halfOpen && f.t.probe {
						return // from here on ours waits longer
					}
					ours.done(f.t, failure)
					f.done(transportError(false))
				case step == 9:
					time.Sleep(11 * time.Second)
				}
				if state, _ := ours.look(); string(state) != map[gobreaker.State]string{
					gobreaker.StateClosed: "closed", gobreaker.StateOpen: "open", gobreaker.StateHalfOpen: "half_open",
				}[theirs.State()] {
					t.Fatalf("step %d of %v: ours %s, theirs %s", i, steps, state, theirs.State())
				}
			}
		})
	})
}
