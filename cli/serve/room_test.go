package serve

import (
	"runtime"
	gauges "runtime/metrics"
	"testing"
)

func TestPercentFor(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{
		0: 100, 1 << 20: 400, 4 << 20: 300, 5 << 20: 200, 8 << 20: 100, 16 << 20: 100, 1 << 30: 100,
	} {
		if got := percentFor(live, live, leastHeap); got != want {
			t.Errorf("%d MB alive: %d %%, want %d", live>>20, got, want)
		}
	}
	if got := percentFor(2<<20, 4<<20, leastHeap); got != 350 {
		t.Errorf("with as much in stacks: %d %%", got)
	}
}

func TestRoomFor(t *testing.T) {
	t.Parallel()
	for open, want := range map[int]uint64{0: 16 << 20, 20: 16 << 20, 100: 16<<20 + 80*160<<10, 1000: 16<<20 + 980*160<<10} {
		if got := roomFor(open); got != want {
			t.Errorf("%d connections: %d bytes, want %d", open, got, want)
		}
	}
	// What a thousand keep is a quarter of it at most.
	if got := percentFor(24<<20, 24<<20, roomFor(1000)); got < 300 {
		t.Errorf("with a thousand connections and 24 MB alive: %d %%", got)
	}
}

// Not parallel: it is about the whole process.
func TestKeepRoom(t *testing.T) {
	t.Setenv("GOGC", "")
	percent := func() int {
		sample := []gauges.Sample{{Name: "/gc/gogc:percent"}}
		gauges.Read(sample)
		return int(sample[0].Value.Uint64())
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
	// Of a size that leaves room whatever other tests keep.
	many := int(2 * (32 << 20) / roomPer)
	runtime.GC() // before the first one nothing counts as alive
	live, _ := heap()
	many += int(4 * live / roomPer)
	keepRoom(func() int { return many }).stop() // one that has ended has no say any more
	r := keepRoom(func() int { return many })
	until(func(p int) bool { return p > 100 })
	// Agents that come are counted before the next collection, and then as what they
	// really keep. What is left to do after an earlier one may come in between.
	noticed := false
	for range 100 {
		for range 4 * many * roomPer / agentKeeps {
			r.agent()
		}
		if noticed = percent() == 100; noticed {
			break
		}
	}
	if !noticed {
		t.Errorf("after many agents came: %d %%", percent())
	}
	until(func(p int) bool { return p > 100 })
	r.stop()
	if p := percent(); p != 100 {
		t.Errorf("after its end: %d %%", p)
	}
}
