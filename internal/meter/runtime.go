package meter

import (
	"runtime"
	"runtime/debug"
	gauges "runtime/metrics"
	"time"
)

// AddRuntime adds the figures of the Go runtime.
func (r *Registry) AddRuntime() {
	r.Info("go_info", "Information about the Go environment.", "version", runtime.Version())
	r.GaugeFunc("go_goroutines", "Number of goroutines that currently exist.", func() float64 { return float64(runtime.NumGoroutine()) })
	r.GaugeFunc("go_threads", "Number of OS threads created.", func() float64 {
		n, _ := runtime.ThreadCreateProfile(nil)
		return float64(n)
	})
	r.Add(collections)
	r.Add(readings(runtimeFigures()))
}

// collections tells of the garbage collector.
func collections() []Family {
	gc := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&gc)
	pauses := Sample{Sum: gc.PauseTotal.Seconds(), Count: uint64(gc.NumGC)}
	for _, p := range gc.PauseQuantiles {
		pauses.Quantiles = append(pauses.Quantiles, p.Seconds())
	}
	return []Family{
		{
			Name: "go_gc_duration_seconds", Help: "A summary of the wall-time pause (stop-the-world) duration in garbage collection cycles.",
			Kind: KindSummary, Bounds: []float64{0, .25, .5, .75, 1}, Samples: []Sample{pauses},
		},
		single("go_memstats_last_gc_time_seconds", "Number of seconds since 1970 of last garbage collection.", KindGauge, float64(gc.LastGC.UnixNano())/1e9),
	}
}

// readings asks the runtime for all figures at once, which stops nothing.
func readings(figures []gauged) func() []Family {
	var names []gauges.Sample
	at := map[string]int{}
	for _, f := range figures {
		for _, name := range f.sum {
			if _, ok := at[name]; !ok {
				at[name] = len(names)
				names = append(names, gauges.Sample{Name: name})
			}
		}
	}
	return func() []Family {
		read := append([]gauges.Sample(nil), names...)
		gauges.Read(read)
		out := make([]Family, 0, len(figures))
		for _, f := range figures {
			var v float64
			for _, name := range f.sum {
				if s := read[at[name]].Value; s.Kind() == gauges.KindUint64 {
					v += float64(s.Uint64())
				}
			}
			out = append(out, single(f.name, f.help, f.kind, v))
		}
		return out
	}
}
