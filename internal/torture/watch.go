package torture

import (
	"os"
	"runtime"
	"sync"
	"time"
)

// watch samples what this process uses, until it is stopped.
type watch struct {
	memoryBefore, memory           int64 // bytes of heap and stacks, at the start and at most
	descriptorsBefore, descriptors int   // 0 where the system does not tell

	end  chan struct{}
	done chan struct{}
	once sync.Once
}

// watchEvery is how often is looked. A look stops the program for a moment.
const watchEvery = 50 * time.Millisecond

func startWatch() *watch {
	w := &watch{end: make(chan struct{}), done: make(chan struct{})}
	w.look()
	w.memoryBefore, w.descriptorsBefore = w.memory, w.descriptors
	go func() {
		defer close(w.done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.look()
			case <-w.end:
				return
			}
		}
	}()
	return w
}

// stop ends the sampling; the figures can be read then.
func (w *watch) stop() {
	w.once.Do(func() { close(w.end) })
	<-w.done
}

func (w *watch) look() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.memory = max(w.memory, int64(m.HeapInuse+m.StackInuse))
	w.descriptors = max(w.descriptors, countDescriptors())
}

// countDescriptors returns how many descriptors this process has open, 0 where the
// system does not tell.
func countDescriptors() int {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if open, err := os.ReadDir(dir); err == nil {
			return len(open)
		}
	}
	return 0
}
