package serve

import (
	"net"
	"os"
	"runtime"
	"runtime/debug"
	gauges "runtime/metrics"
	"sync"
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
	roomPer   = 160 << 10
)

// What an agent's connection keeps, about, and after how many new ones that is taken
// into account. Waiting for the next collection would be too late when many come at
// once: until it is noticed, the heap would grow by a multiple of what they keep.
const (
	agentKeeps = 48 << 10
	someAgents = 16
)

// room has garbage collected no earlier than at the size of roomFor, until stop is
// called. From there on it is as usual, and a user who sets GOGC has decided already.
type room struct {
	open func() int // how many servers are connected

	mu      sync.Mutex // guards what follows
	percent int
	agents  int // that came since the last collection
	stopped bool
}

func keepRoom(open func() int) *room {
	r := &room{open: open, percent: 100, stopped: os.Getenv("GOGC") != ""}
	if !r.stopped {
		r.watch()
	}
	return r
}

// watch has collected called after the next collection.
func (r *room) watch() { runtime.AddCleanup(new([16]byte), (*room).collected, r) }

func (r *room) collected() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	r.agents = 0
	r.adjust()
	r.watch()
}

// agent tells of a new connection of an agent.
func (r *room) agent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.agents++; r.agents%someAgents == 0 && !r.stopped {
		r.adjust()
	}
}

// adjust sets the percentage again; it needs mu.
func (r *room) adjust() {
	live, scanned := heap()
	more := uint64(r.agents) * agentKeeps
	if next := percentFor(live+more, scanned+more, roomFor(r.open())); next != r.percent {
		r.percent = next
		debug.SetGCPercent(next)
	}
}

// stop ends it at once: what waited for the next collection would undo what somebody
// else has set until then.
func (r *room) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped && r.percent != 100 {
		debug.SetGCPercent(100)
	}
	r.stopped = true
}

// roomListener tells a room of new connections.
type roomListener struct {
	net.Listener
	room *room
}

func (l *roomListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.room.agent()
	}
	return c, err
}

// roomFor is the size up to which the heap may grow.
func roomFor(open int) uint64 { return leastHeap + uint64(max(open-fewOpen, 0))*roomPer }

// percentFor is the percentage that leads to a size of the heap, in steps, as every
// change stops everything for a moment. It applies to all that a collection looks
// through, of which live bytes stay.
func percentFor(live, scanned, size uint64) int {
	const step = 50
	// However little is alive, Go does not collect before this size, at 100 percent.
	const minimum = 4 << 20
	if scanned == 0 || live >= size/2 {
		return 100
	}
	return max(100, int(min((size-live)*100/scanned, size*100/minimum))/step*step)
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
