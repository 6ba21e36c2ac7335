// Package meter counts what a serving usher does, and tells it in the text format of
// Prometheus. It owns counters and histograms with labels, the figures of the Go
// runtime and of the process, and the page that is scraped; what is counted, and
// under which name, is for others to say. It knows nothing of the network:
// internal/otlp sends the same figures to a collector.
//
//	r := meter.New()
//	calls := r.Counters("calls_total", "Calls, by server.", "server")
//	math := calls.With("math") // resolved once
//	math.Inc()                 // an atomic addition
//	mux.Handle("/metrics", r.Handler())
//
// The usual client library does the same and more, and makes every start of the
// program slower by a millisecond: its packages prepare themselves before main, also
// for commands that count nothing.
package meter
