package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	gauges "runtime/metrics"
	"sync/atomic"
)

// leastHeap is the size up to which a gateway's heap may always grow before garbage
// is collected. A gateway keeps a few megabytes and makes garbage quickly: collecting
// at twice of what it keeps, as is usual, would be most of its work.
const leastHeap = 16 << 20

// keepRoom has garbage collected no earlier than at leastHeap, until stop is called.
// From there on it is as usual, and whoever sets GOGC has decided already.
func keepRoom() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	var stopped atomic.Bool
	var collected func(int)
	last := 100
	watch := func() { runtime.AddCleanup(new([16]byte), collected, 0) }
	collected = func(int) { // after every collection, one at a time
		if stopped.Load() {
			debug.SetGCPercent(100)
			return
		}
		if next := percentFor(heap()); next != last {
			last = next
			debug.SetGCPercent(next)
		}
		watch()
	}
	watch()
	return func() { stopped.Store(true) }
}

// percentFor is the percentage that leads to leastHeap, in steps, as every change
// stops everything for a moment. It applies to all that a collection looks through,
// of which live bytes stay.
func percentFor(live, scanned uint64) int {
	const step = 50
	if scanned == 0 || live >= leastHeap/2 {
		return 100
	}
	return max(100, int((leastHeap-live)*100/scanned)/step*step)
}

// heap tells what the last collection left alive, and what it looked through.
func heap() (live, scanned uint64) {
	sample := []gauges.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	gauges.Read(sample)
	for i, s := range sample {
		if s.Value.Kind() != gauges.KindUint64 {
			return 0, 0
		}
		if scanned += s.Value.Uint64(); i == 0 {
			live = scanned
		}
	}
	return live, scanned
}
