package host

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestBudgetEjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{max: 2, window: time.Minute}
		for i, want := range []bool{false, false, true, false} {
			if got := b.spend(); got != want {
				t.Fatalf("restart %d: ejected now %v, want %v", i+1, got, want)
			}
		}
		time.Sleep(24 * time.Hour)
		b.worked()
		if !b.isEjected() || b.used() != 3 {
			t.Fatalf("ejected %v, %d used; it lasts until cleared", b.isEjected(), b.used())
		}
		b.clear()
		if b.isEjected() || b.used() != 0 || b.spend() {
			t.Error("clear did not give the budget back")
		}
	})
}

// Time alone pays nothing back: a server that never works is not started for ever.
func TestBudgetNeedsProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hopeless, flaky := &budget{max: 5, window: 5 * time.Minute}, &budget{max: 5, window: 5 * time.Minute}
		starts := 0
		for range 24 {
			if !hopeless.isEjected() {
				starts++
				hopeless.spend()
			}
			flaky.spend()
			time.Sleep(30 * time.Minute)
			flaky.worked()
			time.Sleep(30 * time.Minute)
		}
		if starts != 6 {
			t.Errorf("%d starts in a day, want the first and 5 more", starts)
		}
		if flaky.isEjected() || flaky.used() != 0 {
			t.Errorf("one crash an hour between hours of work: ejected %v, %d used", flaky.isEjected(), flaky.used())
		}
	})
}

func TestBudgetModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(rt, "limit")
		steps := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 80).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			const window = time.Minute
			b := &budget{max: limit, window: window}
			var restarts []time.Time
			var proof time.Time
			ejected := false
			counted := func() int {
				n := 0
				for _, at := range restarts {
					if time.Since(at) < window || !at.Before(proof) {
						n++
					}
				}
				return n
			}
			for i, step := range steps {
				switch step {
				case 0:
					now := b.spend()
					if !ejected {
						restarts = append(restarts, time.Now())
						ejected = counted() > limit
						if now != ejected {
							t.Fatalf("step %d of %v: ejected %v, want %v", i, steps, now, ejected)
						}
					} else if now {
						t.Fatalf("step %d of %v: ejected twice", i, steps)
					}
				case 1:
					b.worked()
					proof = time.Now()
				default:
					time.Sleep(time.Duration(step-1) * 17 * time.Second)
				}
				if !ejected && b.used() != counted() || b.isEjected() != ejected {
					t.Fatalf("step %d of %v: %d used, ejected %v; want %d, %v", i, steps, b.used(), b.isEjected(), counted(), ejected)
				}
			}
		})
	})
}
