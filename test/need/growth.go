package need

import (
	"testing"
	"time"
)

// growthFactor is how much larger the second input of [Linear] is, and growthLimit
// how much more time it may take. Linear work takes 8 times as much, quadratic
// work 64 times.
const (
	growthFactor = 8
	growthLimit  = 24
)

// Linear fails the test when the time that work takes grows faster than its input.
// prepare makes an input of n items and returns the work on it; only the work is
// measured, the fastest of a few runs, so that a busy machine does not matter.
func Linear(t testing.TB, n int, prepare func(n int) (work func())) {
	t.Helper()
	small, large := prepare(n), prepare(growthFactor*n)
	var ratio float64
	for range 4 {
		ratio = float64(fastest(large)) / float64(max(fastest(small), time.Microsecond))
		if ratio <= growthLimit {
			return
		}
	}
	t.Errorf("%d times the input takes %.0f times as long, want at most %d", growthFactor, ratio, growthLimit)
}

func fastest(work func()) time.Duration {
	best := time.Duration(0)
	for i := range 3 {
		begin := time.Now()
		work()
		if took := time.Since(begin); i == 0 || took < best {
			best = took
		}
	}
	return best
}
