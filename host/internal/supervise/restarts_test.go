package supervise

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestBudgetEjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Restarts{Max: 2, Window: time.Minute}
		for i, want := range []bool{false, false, true, false} {
			if got := b.Spend(false); got != want {
				t.Fatalf("restart %d: ejected now %v, want %v", i+1, got, want)
			}
		}
		time.Sleep(24 * time.Hour)
		b.Worked()
		if !b.IsEjected() || b.Used() != 3 {
			t.Fatalf("ejected %v, %d used; it lasts until cleared", b.IsEjected(), b.Used())
		}
		b.Clear()
		if b.IsEjected() || b.Used() != 0 || b.Spend(false) {
			t.Error("clear did not give the budget back")
		}
	})
}

// A crash an hour between hours of work is no reason for an ejection; restarts of a
// server that never works do not leave the window.
func TestBudgetNeedsProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hopeless, flaky := &Restarts{Max: 5, Window: 5 * time.Minute}, &Restarts{Max: 5, Window: 5 * time.Minute}
		starts := 0
		for range 24 {
			if !hopeless.IsEjected() {
				starts++
				hopeless.Spend(false)
			}
			flaky.Spend(false)
			time.Sleep(30 * time.Minute)
			flaky.Worked()
			time.Sleep(30 * time.Minute)
		}
		if starts != 6 {
			t.Errorf("%d starts in a day, want the first and 5 more", starts)
		}
		if flaky.IsEjected() || flaky.Used() != 0 {
			t.Errorf("one crash an hour between hours of work: ejected %v, %d used", flaky.IsEjected(), flaky.Used())
		}
	})
}

// An outage counts once when it is over; probes never eject; starts are limited.
func TestBudgetOfOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Restarts{Max: 5, Window: 5 * time.Minute, Reset: 50 * time.Minute}
		for range 5 {
			for range 5 {
				b.Started()
				if b.Spend(false) {
					t.Fatal("ejected by an outage")
				}
			}
			if b.Wait(1) <= 0 || b.Wait(1) > time.Minute {
				t.Errorf("after 5 starts at once the next one waits %v", b.Wait(1))
			}
			for range 5 {
				if b.Spend(true) {
					t.Fatal("ejected by a probe")
				}
			}
			b.Worked()
		}
		if b.Used() != 5 || !b.Spend(false) || b.Used() != 6 {
			t.Errorf("%d used; the sixth outage within the window ejects", b.Used())
		}
		b.Worked()
		time.Sleep(50*time.Minute - 1)
		if ejected, ended := b.Check(); !ejected || ended || b.Left() != 1 {
			t.Errorf("before the end: %v, %v, %v left", ejected, ended, b.Left())
		}
		time.Sleep(time.Nanosecond)
		if ejected, ended := b.Check(); ejected || !ended || b.Used() != 0 || b.Wait(1) != 0 {
			t.Errorf("at the end: %v, %v, %d used", ejected, ended, b.Used())
		}
		if _, ended := b.Check(); ended {
			t.Error("it ended twice")
		}
	})
}

// Starts that failed count for a minute, whatever worked in between; others do not.
func TestBudgetOfStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Restarts{Max: 3, Window: 5 * time.Minute}
		want := func(one, two, four time.Duration) {
			t.Helper()
			if b.Wait(1) != one || b.Wait(2) != two || b.Wait(4) != four {
				t.Errorf("one start waits %v, two %v, four %v; want %v, %v, %v", b.Wait(1), b.Wait(2), b.Wait(4), one, two, four)
			}
		}
		want(0, 0, 0)
		for range 10 {
			b.Started()
			b.ForgetStart()
		}
		want(0, 0, 0)
		for range 2 {
			b.Started()
			time.Sleep(10 * time.Second)
		}
		want(0, 40*time.Second, 50*time.Second)
		b.Started()
		b.ForgetStart()
		b.Worked()
		want(0, 40*time.Second, 50*time.Second)
		b.Started()
		want(40*time.Second, 50*time.Second, time.Minute)
		time.Sleep(40 * time.Second)
		want(0, 10*time.Second, 20*time.Second)
		b.Clear()
		want(0, 0, 0)
	})
}

// The start that works or ejects the server is not held back, except behind a circuit
// that is not closed.
func TestBudgetLastStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Restarts{Max: 2, Window: 5 * time.Minute}
		for i, wait := range []time.Duration{0, 0} {
			if got := b.WaitStart(true); got != wait {
				t.Errorf("start %d waits %v, want %v", i+1, got, wait)
			}
			b.Started()
			b.Spend(false)
		}
		if b.WaitStart(true) != 0 || b.WaitStart(false) != time.Minute {
			t.Errorf("the last start waits %v, that of a probe %v", b.WaitStart(true), b.WaitStart(false))
		}
		b.Worked()
		if b.WaitStart(true) != time.Minute {
			t.Errorf("in the next outage a start waits %v", b.WaitStart(true))
		}
	})
}

func TestBudgetModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(rt, "limit")
		steps := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 80).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			const window = time.Minute
			b := &Restarts{Max: limit, Window: window}
			var outages [][]time.Time // the last one is still going on
			outages = append(outages, nil)
			ejected := false
			counted := func() int {
				now := outages[len(outages)-1]
				n := min(len(now), 1)
				for _, past := range outages[:len(outages)-1] {
					if time.Since(past[len(past)-1]) < window {
						n++
					}
				}
				return max(n, len(now))
			}
			for i, step := range steps {
				switch step {
				case 0, 4:
					probe := step == 4
					now := b.Spend(probe)
					if ejected {
						if now {
							t.Fatalf("step %d of %v: ejected twice", i, steps)
						}
						break
					}
					outages[len(outages)-1] = append(outages[len(outages)-1], time.Now())
					ejected = !probe && counted() > limit
					if now != ejected {
						t.Fatalf("step %d of %v: ejected %v, want %v", i, steps, now, ejected)
					}
				case 1:
					b.Worked()
					if len(outages[len(outages)-1]) > 0 && !ejected {
						outages = append(outages, nil)
					}
				default:
					time.Sleep(time.Duration(step-1) * 17 * time.Second)
				}
				if got := b.Used(); !ejected && min(got, limit+1) != min(counted(), limit+1) || b.IsEjected() != ejected {
					t.Fatalf("step %d of %v: %d used, ejected %v; want %d, %v", i, steps, got, b.IsEjected(), counted(), ejected)
				}
			}
		})
	})
}
