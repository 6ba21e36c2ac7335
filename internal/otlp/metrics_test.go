package otlp

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/usher-mcp/usher/internal/meter"
)

func TestFigures(t *testing.T) {
	began, now := time.Unix(100, 0), time.Unix(200, 5)
	got := &metricspb.MetricsData{}
	message := appendFigures(nil, figures{
		about: resource.NewWithAttributes("https://schema.example", attribute.String("service.name", "usher")),
		scope: instrumentation.Scope{Name: "lib", Version: "1"}, began: began, now: now,
		families: []meter.Family{
			{Name: "calls_total", Help: "Calls.", Kind: meter.KindCounter, Labels: []string{"server"}, Samples: []meter.Sample{
				{Values: []string{"math"}, Value: 3}, {Values: []string{"\xff"}, Value: 0},
			}},
			{Name: "open_bytes", Kind: meter.KindGauge, Samples: []meter.Sample{{Value: -1.5}}},
			{Name: "took_seconds", Kind: meter.KindHistogram, Bounds: []float64{.1, 1}, Labels: []string{"server"}, Samples: []meter.Sample{
				{Values: []string{"math"}, Counts: []uint64{1, 0, 2}, Count: 3, Sum: 7},
			}},
			{Name: "pause_seconds", Kind: meter.KindSummary, Bounds: []float64{0, 1}, Samples: []meter.Sample{{Quantiles: []float64{0, 2}, Count: 2, Sum: 2}}},
		},
	})
	if err := proto.Unmarshal(message, got); err != nil {
		t.Fatal(err)
	}
	label := func(v string) []*commonpb.KeyValue { return []*commonpb.KeyValue{texts("server", v)} }
	start, at := uint64(100e9), uint64(200e9+5)
	point := func(v string, n float64) *metricspb.NumberDataPoint {
		return &metricspb.NumberDataPoint{StartTimeUnixNano: start, TimeUnixNano: at, Attributes: label(v), Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: n}}
	}
	all := metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	want := &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{texts("service.name", "usher")}}, SchemaUrl: "https://schema.example",
		ScopeMetrics: []*metricspb.ScopeMetrics{{
			Scope: &commonpb.InstrumentationScope{Name: "lib", Version: "1"},
			Metrics: []*metricspb.Metric{
				{Name: "calls_total", Description: "Calls.", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{
					DataPoints: []*metricspb.NumberDataPoint{point("math", 3), point("\uFFFD", 0)}, AggregationTemporality: all, IsMonotonic: true,
				}}},
				{Name: "open_bytes", Unit: "By", Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{
					DataPoints: []*metricspb.NumberDataPoint{{TimeUnixNano: at, Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: -1.5}}},
				}}},
				{Name: "took_seconds", Unit: "s", Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{
					DataPoints: []*metricspb.HistogramDataPoint{{
						StartTimeUnixNano: start, TimeUnixNano: at, Attributes: label("math"), Count: 3, Sum: new(7.0),
						BucketCounts: []uint64{1, 0, 2}, ExplicitBounds: []float64{.1, 1},
					}}, AggregationTemporality: all,
				}}},
				{Name: "pause_seconds", Unit: "s", Data: &metricspb.Metric_Summary{Summary: &metricspb.Summary{DataPoints: []*metricspb.SummaryDataPoint{{
					StartTimeUnixNano: start, TimeUnixNano: at, Count: 2, Sum: 2,
					QuantileValues: []*metricspb.SummaryDataPoint_ValueAtQuantile{{Quantile: 0, Value: 0}, {Quantile: 1, Value: 2}},
				}}}}},
			},
		}},
	}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func texts(key, v string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
}

// Whatever is counted arrives: the official reader finds every figure and label.
func TestFiguresArrive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := meter.Family{Name: "x", Help: rapid.StringN(0, 16, -1).Draw(t, "help"), Kind: meter.KindHistogram, Labels: []string{"l"}}
		f.Bounds = rapid.SliceOfN(rapid.Float64(), 0, 8).Draw(t, "bounds")
		for range rapid.IntRange(1, 8).Draw(t, "samples") {
			f.Samples = append(f.Samples, meter.Sample{
				Values: []string{rapid.StringN(0, 16, -1).Draw(t, "label")}, Sum: rapid.Float64().Draw(t, "sum"), Count: rapid.Uint64().Draw(t, "count"),
				Counts: rapid.SliceOfN(rapid.Uint64(), len(f.Bounds)+1, len(f.Bounds)+1).Draw(t, "counts"),
			})
		}
		got := &metricspb.MetricsData{}
		if err := proto.Unmarshal(appendFigures(nil, figures{families: []meter.Family{f}}), got); err != nil {
			t.Fatal(err)
		}
		m := got.ResourceMetrics[0].ScopeMetrics[0].Metrics[0]
		back := meter.Family{Name: m.Name, Help: m.Description, Kind: meter.KindHistogram, Labels: []string{"l"}, Bounds: f.Bounds}
		for _, p := range m.GetHistogram().DataPoints {
			if diff := cmp.Diff(f.Bounds, p.ExplicitBounds); len(f.Bounds) > 0 && diff != "" {
				t.Fatal(diff)
			}
			back.Samples = append(back.Samples, meter.Sample{
				Values: []string{p.Attributes[0].Value.GetStringValue()}, Sum: p.GetSum(), Count: p.Count, Counts: p.BucketCounts,
			})
		}
		same := cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
		if diff := cmp.Diff(f, back, same); diff != "" {
			t.Fatalf("(-counted +read)\n%s", diff)
		}
	})
}
