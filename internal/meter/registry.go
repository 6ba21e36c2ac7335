package meter

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Kind is what a family's figures mean.
type Kind string

// The kinds, in the words of the text format.
const (
	KindCounter   Kind = "counter"   // only rises, from 0 at the start of the process
	KindGauge     Kind = "gauge"     // rises and falls
	KindHistogram Kind = "histogram" // how many there were, by size
	KindSummary   Kind = "summary"   // quantiles
)

// Family is all figures of one name, at one moment.
type Family struct {
	Name, Help string
	Kind       Kind
	Labels     []string // names of the labels, in the order in which they are printed

	// Bounds are the upper bounds of a histogram's buckets, rising and without
	// infinity, or the quantiles of a summary.
	Bounds  []float64
	Samples []Sample
}

// Sample is one figure of a family.
type Sample struct {
	Values []string // of the labels
	Value  float64  // of a counter or gauge

	// Counts are the buckets of a histogram, one more than Bounds, each by itself.
	Counts []uint64
	// Quantiles are the values at each of a summary's Bounds.
	Quantiles []float64
	Count     uint64  // of a histogram or summary
	Sum       float64 // of a histogram or summary
}

// Registry knows where to ask for figures. It may be used by several goroutines.
type Registry struct {
	began time.Time

	mu      sync.Mutex // guards sources
	sources []func() []Family
}

// New returns an empty registry.
func New() *Registry { return &Registry{began: time.Now()} }

// Began is the moment from which counters count.
func (r *Registry) Began() time.Time { return r.began }

// Add has source asked whenever somebody wants to know. It may be asked by several
// at once. No two families may have one name.
func (r *Registry) Add(source func() []Family) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources = append(r.sources, source)
}

// CounterFunc adds a counter without labels that somebody else keeps.
func (r *Registry) CounterFunc(name, help string, get func() float64) {
	r.Add(func() []Family { return []Family{single(name, help, KindCounter, get())} })
}

// GaugeFunc adds a gauge without labels.
func (r *Registry) GaugeFunc(name, help string, get func() float64) {
	r.Add(func() []Family { return []Family{single(name, help, KindGauge, get())} })
}

// Info adds a gauge that is always 1 and says something by a label.
func (r *Registry) Info(name, help, label, value string) {
	f := Family{Name: name, Help: help, Kind: KindGauge, Labels: []string{label}, Samples: []Sample{{Values: []string{value}, Value: 1}}}
	r.Add(func() []Family { return []Family{f} })
}

func single(name, help string, kind Kind, v float64) Family {
	return Family{Name: name, Help: help, Kind: kind, Samples: []Sample{{Value: v}}}
}

// Gather asks everybody. The families are sorted by name, and their samples by the
// values of their labels, so that two answers can be compared; families without a
// sample are left out.
func (r *Registry) Gather() []Family {
	r.mu.Lock()
	sources := slices.Clone(r.sources)
	r.mu.Unlock()
	var all []Family
	for _, ask := range sources {
		for _, f := range ask() {
			if len(f.Samples) == 0 {
				continue
			}
			slices.SortFunc(f.Samples, func(a, b Sample) int { return slices.Compare(a.Values, b.Values) })
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b Family) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
