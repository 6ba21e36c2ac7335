package otlp

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// SpanExporter sends spans.
type SpanExporter struct{ Client *Client }

// ExportSpans implements sdktrace.SpanExporter. An error that is a Rejected tells
// that the rest was taken.
func (e *SpanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	return e.Client.Send(ctx, appendSpans(nil, spans))
}

// Shutdown implements sdktrace.SpanExporter.
func (e *SpanExporter) Shutdown(context.Context) error {
	e.Client.Close()
	return nil
}

const (
	flagsKnowRemote = 0x100 // it is known whether the other span is remote
	flagsRemote     = 0x200 // it is
)

// spansOf are the spans of one sender and library.
type spansOf struct {
	sender attribute.Distinct
	scope  instrumentation.Scope
	spans  []sdktrace.ReadOnlySpan
}

// appendSpans writes an ExportTraceServiceRequest.
func appendSpans(dst []byte, spans []sdktrace.ReadOnlySpan) []byte {
	w := &writer{dst}
	groups := grouped(spans)
	for len(groups) > 0 {
		sender := groups[0].sender
		about := groups[0].spans[0].Resource()
		w.message(1, func() {
			w.resource(1, about)
			for _, g := range groups {
				if g.sender == sender {
					w.scopeSpans(2, g)
				}
			}
			w.text(3, about.SchemaURL())
		})
		groups = slices.DeleteFunc(groups, func(g spansOf) bool { return g.sender == sender })
	}
	return w.buf
}

func grouped(spans []sdktrace.ReadOnlySpan) []spansOf {
	var groups []spansOf
	for _, s := range spans {
		sender, scope := s.Resource().Equivalent(), s.InstrumentationScope()
		i := slices.IndexFunc(groups, func(g spansOf) bool { return g.sender == sender && g.scope == scope })
		if i < 0 {
			i = len(groups)
			groups = append(groups, spansOf{sender: sender, scope: scope})
		}
		groups[i].spans = append(groups[i].spans, s)
	}
	return groups
}

func (w *writer) scopeSpans(field int, g spansOf) {
	w.message(field, func() {
		w.scope(1, g.scope)
		for _, s := range g.spans {
			w.message(2, func() { w.span(s) })
		}
		w.text(3, g.scope.SchemaURL)
	})
}

func (w *writer) span(s sdktrace.ReadOnlySpan) {
	w.context(s.SpanContext())
	w.text(3, s.SpanContext().TraceState().String())
	if parent := s.Parent().SpanID(); parent.IsValid() {
		w.bytes(4, parent[:])
	}
	w.text(5, s.Name())
	w.varint(6, kindOf(s.SpanKind()))
	w.fixed64(7, nanoseconds(s.StartTime()))
	w.fixed64(8, nanoseconds(s.EndTime()))
	w.attributes(9, slices.Values(s.Attributes()))
	w.varint(10, atMost32(s.DroppedAttributes()))
	for _, e := range s.Events() {
		w.message(11, func() {
			w.fixed64(1, nanoseconds(e.Time))
			w.text(2, e.Name)
			w.attributes(3, slices.Values(e.Attributes))
			w.varint(4, atMost32(e.DroppedAttributeCount))
		})
	}
	w.varint(12, atMost32(s.DroppedEvents()))
	for _, l := range s.Links() {
		w.message(13, func() { w.link(l) })
	}
	w.varint(14, atMost32(s.DroppedLinks()))
	w.message(15, func() {
		w.text(2, s.Status().Description)
		w.varint(3, statusOf(s.Status().Code))
	})
	w.fixed32(16, flagsOf(s.SpanContext().TraceFlags(), s.Parent()))
}

func (w *writer) link(l sdktrace.Link) {
	w.context(l.SpanContext)
	w.text(3, l.SpanContext.TraceState().String())
	w.attributes(4, slices.Values(l.Attributes))
	w.varint(5, atMost32(l.DroppedAttributeCount))
	w.fixed32(6, flagsOf(l.SpanContext.TraceFlags(), l.SpanContext))
}

// context writes the two numbers that spans and links begin with.
func (w *writer) context(c trace.SpanContext) {
	traceID, spanID := c.TraceID(), c.SpanID()
	w.bytes(1, traceID[:])
	w.bytes(2, spanID[:])
}

func flagsOf(f trace.TraceFlags, from trace.SpanContext) uint32 {
	flags := uint32(f) | flagsKnowRemote
	if from.IsRemote() {
		flags |= flagsRemote
	}
	return flags
}

func nanoseconds(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

func kindOf(k trace.SpanKind) uint64 {
	switch k {
	case trace.SpanKindInternal:
		return 1
	case trace.SpanKindServer:
		return 2
	case trace.SpanKindClient:
		return 3
	case trace.SpanKindProducer:
		return 4
	case trace.SpanKindConsumer:
		return 5
	}
	return 0
}

func statusOf(c codes.Code) uint64 {
	switch c {
	case codes.Ok:
		return 1
	case codes.Error:
		return 2
	}
	return 0
}
