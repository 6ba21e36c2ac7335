package meter

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// cacheLine is how far apart what several processors count must lie, so that they do
// not wait for each other.
const cacheLine = 64

// Counters are the counters of one family.
type Counters struct{ vector[Counter] }

// Counter only rises. It may be used by several goroutines.
type Counter struct {
	n      atomic.Uint64
	values []string
	_      [cacheLine - 32]byte
}

// Counters adds a family of counters. A counter shows itself once it has counted.
func (r *Registry) Counters(name, help string, labels ...string) *Counters {
	c := &Counters{vector[Counter]{create: func(values []string) *Counter { return &Counter{values: values} }}}
	r.Add(func() []Family {
		f := Family{Name: name, Help: help, Kind: KindCounter, Labels: labels}
		for _, one := range c.all() {
			if n := one.n.Load(); n > 0 {
				f.Samples = append(f.Samples, Sample{Values: one.values, Value: float64(n)})
			}
		}
		return []Family{f}
	})
	return c
}

// Inc counts one.
func (c *Counter) Inc() { c.n.Add(1) }

// Histograms are the histograms of one family.
type Histograms struct{ vector[Histogram] }

// Histogram counts by size. It may be used by several goroutines.
type Histogram struct {
	bounds []float64
	counts []atomic.Uint64 // one per bound, and what is larger
	values []string
	sum    atomic.Uint64 // the bits of a float64
	_      [2*cacheLine - 80]byte
}

// Histograms adds a family of histograms with these upper bounds, which must rise. A
// histogram shows itself once it has counted.
func (r *Registry) Histograms(name, help string, bounds []float64, labels ...string) *Histograms {
	h := &Histograms{vector[Histogram]{create: func(values []string) *Histogram {
		return &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1), values: values}
	}}}
	r.Add(func() []Family {
		f := Family{Name: name, Help: help, Kind: KindHistogram, Labels: labels, Bounds: bounds}
		for _, one := range h.all() {
			if s := one.sample(); s.Count > 0 {
				f.Samples = append(f.Samples, s)
			}
		}
		return []Family{f}
	})
	return h
}

// Observe counts v in the first bucket whose bound is not below it.
func (h *Histogram) Observe(v float64) {
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

// sample reads what was counted. The count is made from the buckets, so that they
// always agree; the sum may lack what is counted at this moment.
func (h *Histogram) sample() Sample {
	s := Sample{Values: h.values, Counts: make([]uint64, len(h.counts)), Sum: math.Float64frombits(h.sum.Load())}
	for i := range h.counts {
		s.Counts[i] = h.counts[i].Load()
		s.Count += s.Counts[i]
	}
	return s
}

// vector is one T for each combination of label values.
type vector[T any] struct {
	create func(values []string) *T

	mu     sync.Mutex // guards series
	series map[string]*T
}

// With returns the one with these values of the labels, in their order; the same
// for the same values. Whoever counts often keeps it.
func (v *vector[T]) With(values ...string) *T {
	key := strings.Join(values, "\xff") // is in no UTF-8
	v.mu.Lock()
	defer v.mu.Unlock()
	one := v.series[key]
	if one == nil {
		one = v.create(slices.Clone(values))
		if v.series == nil {
			v.series = map[string]*T{}
		}
		v.series[key] = one
	}
	return one
}

func (v *vector[T]) all() []*T {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]*T, 0, len(v.series))
	for _, one := range v.series {
		out = append(out, one)
	}
	return out
}
