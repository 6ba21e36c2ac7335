package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestPercentFor(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{
		0: 100, 1 << 20: 1500, 4 << 20: 300, 5 << 20: 200, 8 << 20: 100, 16 << 20: 100, 1 << 30: 100,
	} {
		if got := percentFor(live, live); got != want {
			t.Errorf("%d MB alive: %d %%, want %d", live>>20, got, want)
		}
	}
	if got := percentFor(2<<20, 4<<20); got != 350 {
		t.Errorf("with as much in stacks: %d %%", got)
	}
}

// Not parallel: it is about the whole process.
func TestKeepRoom(t *testing.T) {
	t.Setenv("GOGC", "")
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	until := func(want func(int) bool) {
		t.Helper()
		for range 1000 {
			runtime.GC()
			if want(percent()) {
				return
			}
			runtime.Gosched()
		}
		t.Fatalf("the percentage stays %d", percent())
	}
	stop := keepRoom()
	want := percentFor(heap())
	until(func(p int) bool { return want == 100 || p > 100 })
	stop()
	until(func(p int) bool { return p == 100 })
}
