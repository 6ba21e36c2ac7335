package otlp

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"
)

// caught is a client of the official exporter that keeps what it should send.
type caught struct{ spans []*tracepb.ResourceSpans }

func (c *caught) Start(context.Context) error { return nil }
func (c *caught) Stop(context.Context) error  { return nil }
func (c *caught) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	c.spans = spans
	return nil
}

// officialSpans is what the official exporter makes of spans. It leaves the state of a
// link's trace out, which the protocol has a field for.
func officialSpans(spans []sdktrace.ReadOnlySpan) (*tracepb.TracesData, error) {
	c := &caught{}
	err := otlptrace.NewUnstarted(c).ExportSpans(context.Background(), spans)
	out := &tracepb.TracesData{ResourceSpans: c.spans}
	states := map[string][]string{}
	for _, s := range spans {
		for _, l := range s.Links() {
			states[s.Name()] = append(states[s.Name()], l.SpanContext.TraceState().String())
		}
	}
	for _, r := range out.ResourceSpans {
		for _, sc := range r.ScopeSpans {
			for _, s := range sc.Spans {
				for i, l := range s.Links {
					l.TraceState = states[s.Name][i]
				}
			}
		}
	}
	return out, err
}

// Whatever a span holds: the official reader reads of ours what the official exporter
// would have sent.
func TestSpansAreTheOfficialOnes(t *testing.T) { rapid.Check(t, sameSpans) }

func FuzzSpans(f *testing.F) { f.Fuzz(rapid.MakeFuzz(sameSpans)) }

func sameSpans(t *rapid.T) {
	stubs := tracetest.SpanStubs(rapid.SliceOfN(rapid.Custom(drawSpan), 1, 3).Draw(t, "spans"))
	for i := range stubs {
		stubs[i].Name += string(rune('a' + i)) // no two alike
	}
	want, err := officialSpans(stubs.Snapshots())
	if err != nil {
		t.Fatal(err)
	}
	got := &tracepb.TracesData{}
	if err := proto.Unmarshal(appendSpans(nil, stubs.Snapshots()), got); err != nil {
		t.Fatal(err)
	}
	for _, data := range []*tracepb.TracesData{want, got} { // the official one has no order
		slices.SortFunc(data.ResourceSpans, func(a, b *tracepb.ResourceSpans) int {
			return strings.Compare(first(a).Name, first(b).Name) // identifiers may be alike
		})
	}
	if !proto.Equal(want, got) { // much quicker than looking for a difference
		t.Fatalf("(-official +ours)\n%s", cmp.Diff(want, got, protocmp.Transform()))
	}
}

func first(r *tracepb.ResourceSpans) *tracepb.Span { return r.ScopeSpans[0].Spans[0] }

func drawContext(t *rapid.T) trace.SpanContext {
	state, err := trace.ParseTraceState(rapid.SampledFrom([]string{"", "a=b", "k1=v1,k2=v2"}).Draw(t, "state"))
	if err != nil {
		t.Fatal(err)
	}
	c := trace.SpanContextConfig{TraceState: state, TraceFlags: trace.TraceFlags(rapid.Byte().Draw(t, "flags")), Remote: rapid.Bool().Draw(t, "remote")}
	binary.BigEndian.PutUint64(c.TraceID[8:], rapid.Uint64().Draw(t, "trace"))
	binary.BigEndian.PutUint64(c.SpanID[:], rapid.Uint64().Draw(t, "span"))
	return trace.NewSpanContext(c)
}

func drawValue(t *rapid.T, depth int) attribute.Value {
	kinds := []func() attribute.Value{
		func() attribute.Value { return attribute.Value{} },
		func() attribute.Value { return attribute.StringValue(rapid.StringN(0, 8, -1).Draw(t, "text")) },
		func() attribute.Value { return attribute.BoolValue(rapid.Bool().Draw(t, "bool")) },
		func() attribute.Value { return attribute.Int64Value(rapid.Int64().Draw(t, "int")) },
		func() attribute.Value { return attribute.Float64Value(rapid.Float64().Draw(t, "float")) },
		func() attribute.Value {
			return attribute.ByteSliceValue(make([]byte, rapid.SampledFrom([]int{0, 1, 127, 128, 20000}).Draw(t, "bytes")))
		},
		func() attribute.Value {
			return attribute.StringSliceValue(rapid.SliceOfN(rapid.StringN(0, 4, -1), 0, 2).Draw(t, "texts"))
		},
		func() attribute.Value {
			return attribute.BoolSliceValue(rapid.SliceOfN(rapid.Bool(), 0, 2).Draw(t, "bools"))
		},
		func() attribute.Value {
			return attribute.Int64SliceValue(rapid.SliceOfN(rapid.Int64(), 0, 2).Draw(t, "ints"))
		},
		func() attribute.Value {
			return attribute.Float64SliceValue(rapid.SliceOfN(rapid.Float64(), 0, 2).Draw(t, "floats"))
		},
		func() attribute.Value {
			return attribute.SliceValue(drawValue(t, depth+1), drawValue(t, depth+1))
		},
		func() attribute.Value { return attribute.MapValue(drawAttributes(t, depth+1)...) },
	}
	if depth > 2 {
		kinds = kinds[:10]
	}
	return rapid.SampledFrom(kinds).Draw(t, "kind")()
}

func drawAttributes(t *rapid.T, depth int) (out []attribute.KeyValue) {
	for range rapid.IntRange(0, 3).Draw(t, "attributes") {
		out = append(out, attribute.KeyValue{Key: attribute.Key(rapid.StringN(0, 8, -1).Draw(t, "key")), Value: drawValue(t, depth)})
	}
	return out
}

func drawSpan(t *rapid.T) tracetest.SpanStub {
	moment := func(name string) time.Time { return time.Unix(0, rapid.Int64().Draw(t, name)) }
	dropped := rapid.OneOf(rapid.IntRange(0, 300), rapid.Just(-1), rapid.Just(1<<40))
	s := tracetest.SpanStub{
		Name: rapid.StringN(0, 8, -1).Draw(t, "name"), SpanContext: drawContext(t), Parent: drawContext(t),
		SpanKind:  trace.SpanKind(rapid.IntRange(0, 6).Draw(t, "kind")),
		StartTime: moment("start"), EndTime: moment("end"), Attributes: drawAttributes(t, 0),
		Status:            sdktrace.Status{Code: codes.Code(rapid.IntRange(0, 3).Draw(t, "code")), Description: rapid.StringN(0, 8, -1).Draw(t, "status")},
		DroppedAttributes: dropped.Draw(t, "attributes lost"), DroppedEvents: dropped.Draw(t, "events lost"), DroppedLinks: dropped.Draw(t, "links lost"),
		Resource: rapid.SampledFrom([]*resource.Resource{
			nil, resource.Empty(), resource.NewSchemaless(attribute.String("service.name", "usher"), attribute.Int("n", 1)),
			resource.NewWithAttributes("https://schema.example", attribute.StringSlice("list", []string{"a", ""})),
		}).Draw(t, "resource"),
		InstrumentationScope: rapid.SampledFrom([]instrumentation.Scope{
			{}, {Name: "a"}, {Name: "b", Version: "1", SchemaURL: "https://schema.example", Attributes: attribute.NewSet(attribute.Bool("x", true))},
		}).Draw(t, "scope"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "events") {
		s.Events = append(s.Events, sdktrace.Event{
			Name: rapid.StringN(0, 8, -1).Draw(t, "event"), Time: moment("at"), Attributes: drawAttributes(t, 1), DroppedAttributeCount: dropped.Draw(t, "lost"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "links") {
		s.Links = append(s.Links, sdktrace.Link{SpanContext: drawContext(t), Attributes: drawAttributes(t, 1), DroppedAttributeCount: dropped.Draw(t, "lost")})
	}
	return s
}

// A text that is none must not cost the whole message.
func TestSpansWithBrokenText(t *testing.T) {
	stub := tracetest.SpanStub{Name: "a\xff", Attributes: []attribute.KeyValue{attribute.String("k\xfe", "v\xfd"), attribute.StringSlice("s", []string{"\xff"})}}
	got := &tracepb.TracesData{}
	if err := proto.Unmarshal(appendSpans(nil, tracetest.SpanStubs{stub}.Snapshots()), got); err != nil {
		t.Fatal(err)
	}
	if s := first(got.ResourceSpans[0]); s.Name != "a\uFFFD" || s.Attributes[0].GetValue().GetStringValue() != "v\uFFFD" {
		t.Errorf("%v", s)
	}
}

// A real provider sends through the exporter, and nothing when there is nothing.
func TestSpanExporter(t *testing.T) {
	var sent [][]byte
	c := clientTo(t, func(body []byte) answer { sent = append(sent, body); return answer{code: 200} })
	e := &SpanExporter{Client: c}
	if err := e.ExportSpans(t.Context(), nil); err != nil || len(sent) != 0 {
		t.Errorf("%v, %d requests for no spans", err, len(sent))
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(e))
	_, span := p.Tracer("lib").Start(t.Context(), "work")
	span.RecordError(errors.New("oops"))
	span.End()
	if err := p.Shutdown(t.Context()); err != nil || len(sent) != 1 {
		t.Fatalf("%v, %d requests", err, len(sent))
	}
	got := &tracepb.TracesData{}
	if err := proto.Unmarshal(sent[0], got); err != nil {
		t.Fatal(err)
	}
	if s := first(got.ResourceSpans[0]); s.Name != "work" || len(s.Events) != 1 {
		t.Errorf("%v", s)
	}
}
