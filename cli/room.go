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
//
// What it keeps grows with the servers that it is connected to, and with that the work
// of a collection. So that a call costs the same with many of them, each beyond the
// first few adds room.
const (
	leastHeap = 16 << 20
	fewOpen   = 20
	roomPer   = 96 << 10
)

// keepRoom has garbage collected no earlier than at the size of roomFor, until stop is
// called. From there on it is as usual, and whoever sets GOGC has decided already. open
// is how many servers are connected.
func keepRoom(open func() int) (stop func()) {
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
		live, scanned := heap()
		if next := percentFor(live, scanned, roomFor(open())); next != last {
			last = next
			debug.SetGCPercent(next)
		}
		watch()
	}
	watch()
	return func() { stopped.Store(true) }
}

// roomFor is the size up to which the heap may grow.
func roomFor(open int) uint64 { return leastHeap + uint64(max(open-fewOpen, 0))*roomPer }

// percentFor is the percentage that leads to a size of the heap, in steps, as every
// change stops everything for a moment. It applies to all that a collection looks
// through, of which live bytes stay.
func percentFor(live, scanned, size uint64) int {
	const step = 50
	if scanned == 0 || live >= size/2 {
		return 100
	}
	return max(100, int((size-live)*100/scanned)/step*step)
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
