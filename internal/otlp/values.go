package otlp

import (
	"iter"
	"math"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
)

// resource writes who sends.
func (w *writer) resource(field int, r *resource.Resource) {
	if r == nil {
		return
	}
	w.message(field, func() { w.attributes(1, setOf(r.Set())) })
}

// scope writes which library has made what follows.
func (w *writer) scope(field int, s instrumentation.Scope) {
	if s == (instrumentation.Scope{}) {
		return
	}
	w.message(field, func() {
		w.text(1, s.Name)
		w.text(2, s.Version)
		w.attributes(3, setOf(&s.Attributes))
	})
}

func setOf(s *attribute.Set) iter.Seq[attribute.KeyValue] {
	return func(yield func(attribute.KeyValue) bool) {
		for i := s.Iter(); i.Next(); {
			if !yield(i.Attribute()) {
				return
			}
		}
	}
}

func (w *writer) attributes(field int, all iter.Seq[attribute.KeyValue]) {
	for kv := range all {
		w.attribute(field, kv)
	}
}

func (w *writer) attribute(field int, kv attribute.KeyValue) {
	w.message(field, func() {
		w.text(1, string(kv.Key))
		w.message(2, func() { w.value(kv.Value) })
	})
}

// value writes what an AnyValue holds: nothing for an empty one.
func (w *writer) value(v attribute.Value) {
	switch v.Type() {
	case attribute.EMPTY:
	case attribute.STRING:
		w.textValue(v.AsString())
	case attribute.BOOL:
		w.boolValue(v.AsBool())
	case attribute.INT64:
		w.always(3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		w.double(4, v.AsFloat64())
	case attribute.BYTESLICE:
		w.bytes(7, v.AsByteSlice())
	case attribute.STRINGSLICE:
		array(w, v.AsStringSlice(), w.textValue)
	case attribute.BOOLSLICE:
		array(w, v.AsBoolSlice(), w.boolValue)
	case attribute.INT64SLICE:
		array(w, v.AsInt64Slice(), func(n int64) { w.always(3, uint64(n)) })
	case attribute.FLOAT64SLICE:
		array(w, v.AsFloat64Slice(), func(f float64) { w.double(4, f) })
	case attribute.SLICE:
		array(w, v.AsSlice(), w.value)
	case attribute.MAP:
		w.message(6, func() { w.attributes(1, slices.Values(v.AsMap())) })
	default:
		w.textValue("INVALID") // a kind that is newer than this
	}
}

// textValue writes also an empty text: it is what the value is.
func (w *writer) textValue(s string) {
	if s == "" {
		w.bytes(1, nil)
		return
	}
	w.text(1, s)
}

func (w *writer) boolValue(b bool) {
	if b {
		w.always(2, 1)
	} else {
		w.always(2, 0)
	}
}

func array[T any](w *writer, all []T, value func(T)) {
	w.message(5, func() {
		for _, one := range all {
			w.message(1, func() { value(one) })
		}
	})
}

// atMost32 fits a count into a field of 32 bits.
func atMost32(n int) uint64 { return uint64(min(max(n, 0), math.MaxUint32)) }
