package otlp

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/usher-mcp/usher/internal/meter"
)

// cumulative says of a figure that it is all since the start.
const cumulative = 2

// figures are what one message about metrics holds.
type figures struct {
	about    *resource.Resource
	scope    instrumentation.Scope
	began    time.Time // of all counting
	now      time.Time
	families []meter.Family
}

// appendFigures writes an ExportMetricsServiceRequest.
func appendFigures(dst []byte, f figures) []byte {
	w := &writer{dst}
	w.message(1, func() {
		w.resource(1, f.about)
		w.message(2, func() {
			w.scope(1, f.scope)
			for i := range f.families {
				w.message(2, func() { w.family(&f, &f.families[i]) })
			}
			w.text(3, f.scope.SchemaURL)
		})
		w.text(3, f.about.SchemaURL())
	})
	return w.buf
}

func (w *writer) family(f *figures, m *meter.Family) {
	w.text(1, m.Name)
	w.text(2, m.Help)
	w.text(3, unitOf(m.Name))
	switch m.Kind {
	case meter.KindGauge:
		w.message(5, func() { w.points(f, m, w.number) })
	case meter.KindCounter:
		w.message(7, func() {
			w.points(f, m, w.number)
			w.varint(2, cumulative)
			w.bool(3, true) // it only rises
		})
	case meter.KindHistogram:
		w.message(9, func() {
			w.points(f, m, w.histogram)
			w.varint(2, cumulative)
		})
	case meter.KindSummary:
		w.message(11, func() { w.points(f, m, w.summary) })
	}
}

func (w *writer) points(f *figures, m *meter.Family, point func(m *meter.Family, s *meter.Sample)) {
	for i := range m.Samples {
		w.message(1, func() {
			if m.Kind != meter.KindGauge {
				w.fixed64(2, nanoseconds(f.began))
			}
			w.fixed64(3, nanoseconds(f.now))
			point(m, &m.Samples[i])
		})
	}
}

func (w *writer) number(m *meter.Family, s *meter.Sample) {
	w.double(4, s.Value)
	w.labels(7, m, s)
}

func (w *writer) histogram(m *meter.Family, s *meter.Sample) {
	w.fixed64(4, s.Count)
	w.double(5, s.Sum)
	w.packed(6, len(s.Counts), func(i int) uint64 { return s.Counts[i] })
	w.packed(7, len(m.Bounds), func(i int) uint64 { return math.Float64bits(m.Bounds[i]) })
	w.labels(9, m, s)
}

func (w *writer) summary(m *meter.Family, s *meter.Sample) {
	w.fixed64(4, s.Count)
	w.double(5, s.Sum)
	for i, v := range s.Quantiles {
		w.message(6, func() {
			w.double(1, m.Bounds[i])
			w.double(2, v)
		})
	}
	w.labels(7, m, s)
}

func (w *writer) labels(field int, m *meter.Family, s *meter.Sample) {
	for i, v := range s.Values {
		w.attribute(field, attribute.String(m.Labels[i], v))
	}
}

// unitOf reads the unit that a name ends with, in the words of OpenTelemetry.
func unitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	switch {
	case strings.HasSuffix(name, "_seconds"):
		return "s"
	case strings.HasSuffix(name, "_bytes"):
		return "By"
	}
	return ""
}
