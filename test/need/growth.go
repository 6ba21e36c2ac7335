package need

import (
	"runtime"
	"testing"
	"time"
)

// growthFactor is how much larger the second input of [Linear] is, and growthLimit
// how much longer it may take than the first that many times: linear work takes as
// long, quadratic work 8 times as long.
const (
	growthFactor = 8
	growthLimit  = 3
)

// Linear fails the test when the time that work takes grows faster than its input.
// prepare makes an input of n items and returns the work on it; only the work is
// measured. The small input is worked on as often as makes both sides about equally
// long, and again and again until they are, so that a busy machine delays both alike.
func Linear(t testing.TB, n int, prepare func(n int) (work func())) {
	t.Helper()
	small, large := prepare(n), prepare(growthFactor*n)
	least := 0.0
	for round := range 10 {
		many := took(growthFactor, small)
		one := took(1, large)
		ratio := float64(one) / float64(max(many, time.Microsecond))
		if ratio <= growthLimit {
			return
		}
		if round == 0 || ratio < least {
			least = ratio
		}
	}
	t.Errorf("%d times the input takes %.0f times as long, want at most %d", growthFactor, growthFactor*least, growthFactor*growthLimit)
}

func took(times int, work func()) time.Duration {
	runtime.GC()
	begin := time.Now()
	for range times {
		work()
	}
	return time.Since(begin)
}
