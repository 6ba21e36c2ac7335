package meter

import (
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func TestCounters(t *testing.T) {
	r := New()
	calls := r.Counters("calls_total", "h", "server", "outcome")
	idle := calls.With("idle", "ok")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 1000 {
				calls.With(fmt.Sprint("s", i%2), "ok").Inc()
			}
		})
	}
	wg.Wait()
	want := []Family{{Name: "calls_total", Help: "h", Kind: KindCounter, Labels: []string{"server", "outcome"}, Samples: []Sample{
		{Values: []string{"s0", "ok"}, Value: 4000}, {Values: []string{"s1", "ok"}, Value: 4000},
	}}}
	if diff := cmp.Diff(want, r.Gather()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if calls.With("idle", "ok") != idle {
		t.Error("the same labels lead to another counter")
	}
}

func TestHistograms(t *testing.T) {
	r := New()
	took := r.Histograms("took_seconds", "h", []float64{.1, 1}, "server")
	took.With("idle")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, v := range []float64{0, .1, .25, 1, 2, 64} {
				took.With("math").Observe(v)
			}
		})
	}
	wg.Wait()
	want := []Family{{
		Name: "took_seconds", Help: "h", Kind: KindHistogram, Labels: []string{"server"}, Bounds: []float64{.1, 1},
		Samples: []Sample{{Values: []string{"math"}, Counts: []uint64{16, 16, 16}, Count: 48, Sum: 8 * 67.35}},
	}}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	if diff := cmp.Diff(want, r.Gather(), near); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Two servers must not write to one line of the processor's cache.
func TestSeriesLieApart(t *testing.T) {
	if n := unsafe.Sizeof(Counter{}); n%cacheLine != 0 {
		t.Errorf("a counter has %d bytes", n)
	}
	if n := unsafe.Sizeof(Histogram{}); n%cacheLine != 0 {
		t.Errorf("a histogram has %d bytes", n)
	}
}

func TestGatherSorts(t *testing.T) {
	r := New()
	r.GaugeFunc("b", "", func() float64 { return 2 })
	r.Info("a", "", "version", "1")
	r.Add(func() []Family { return []Family{{Name: "empty", Kind: KindGauge}, single("c", "", KindCounter, 3)} })
	var names []string
	for _, f := range r.Gather() {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Error(diff)
	}
}
