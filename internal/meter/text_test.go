package meter

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	got := string(AppendText(nil, []Family{
		{Name: "a_total", Help: "One\nline, a \\ and a \".", Kind: KindCounter, Labels: []string{"x", "y"}, Samples: []Sample{
			{Values: []string{"1", "a\\\"\nb"}, Value: 1}, {Values: []string{"2", "\xff"}, Value: 1e9},
		}},
		{Name: "b", Kind: KindGauge, Samples: []Sample{{Value: math.Inf(-1)}}},
		{Name: "c", Help: "h", Kind: KindHistogram, Bounds: []float64{.5, 1}, Labels: []string{"x"}, Samples: []Sample{
			{Values: []string{"v"}, Counts: []uint64{1, 2, 3}, Count: 6, Sum: 12.5},
		}},
		{Name: "d", Help: "s", Kind: KindSummary, Bounds: []float64{0, 1}, Samples: []Sample{
			{Quantiles: []float64{.25, math.NaN()}, Count: 2, Sum: 1},
		}},
	}))
	want := strings.TrimPrefix(`
# HELP a_total One\nline, a \\ and a ".
# TYPE a_total counter
a_total{x="1",y="a\\\"\nb"} 1
a_total{x="2",y="�"} 1e+09
# TYPE b gauge
b -Inf
# HELP c h
# TYPE c histogram
c_bucket{x="v",le="0.5"} 1
c_bucket{x="v",le="1"} 3
c_bucket{x="v",le="+Inf"} 6
c_sum{x="v"} 12.5
c_count{x="v"} 6
# HELP d s
# TYPE d summary
d{quantile="0"} 0.25
d{quantile="1"} NaN
d_sum 1
d_count 2
`, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Whatever is counted under whatever labels: the official writer writes the same
// bytes, and the official reader reads them.
func TestTextIsTheOfficialOne(t *testing.T) { rapid.Check(t, sameAsOfficial) }

func FuzzText(f *testing.F) { f.Fuzz(rapid.MakeFuzz(sameAsOfficial)) }

func sameAsOfficial(t *rapid.T) {
	families := rapid.SliceOfN(rapid.Custom(drawFamily), 1, 4).Draw(t, "families")
	for i := range families {
		families[i].Name += strings.Repeat("_", i) // no two alike
	}
	got := AppendText(nil, families)
	var want bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&want, official(f)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Fatalf("the official writer writes (-official +ours)\n%s", diff)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	read, err := parser.TextToMetricFamilies(bytes.NewReader(got))
	if err != nil {
		t.Fatalf("%v in\n%s", err, got)
	}
	for _, f := range families {
		if read[f.Name].String() != official(f).String() {
			t.Fatalf("read %v, want %v", read[f.Name], official(f))
		}
	}
}

func drawFamily(t *rapid.T) Family {
	f := Family{
		Name:   rapid.StringMatching(`[a-z][a-z0-9]{0,8}`).Draw(t, "name"),
		Help:   rapid.StringMatching(`[a-z]([ -~\n\\"äé漢]{0,20}[a-z])?`).Draw(t, "help"), // the reader trims
		Kind:   rapid.SampledFrom([]Kind{KindCounter, KindGauge, KindHistogram, KindSummary}).Draw(t, "kind"),
		Labels: rapid.SampledFrom([][]string{nil, {"server"}, {"server", "state"}}).Draw(t, "labels"),
	}
	if f.Kind == KindHistogram || f.Kind == KindSummary {
		f.Bounds = rapid.SliceOfNDistinct(rapid.Float64Range(0, 1), 1, 4, rapid.ID).Draw(t, "bounds")
		slices.Sort(f.Bounds)
	}
	seen := map[string]bool{}
	for range rapid.IntRange(1, 3).Draw(t, "samples") {
		s := Sample{}
		for range f.Labels {
			s.Values = append(s.Values, rapid.String().Draw(t, "value"))
		}
		if key := strings.Join(s.Values, "\xff"); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		positive := func(v float64) bool { return v != 0 || !math.Signbit(v) } // the format has one zero
		value := rapid.OneOf(rapid.Float64().Filter(positive), rapid.Just(math.Inf(1)), rapid.Just(math.Inf(-1)), rapid.Just(math.NaN()))
		switch f.Kind {
		case KindHistogram:
			for range len(f.Bounds) + 1 {
				s.Counts = append(s.Counts, rapid.Uint64Range(0, 1<<40).Draw(t, "count"))
				s.Count += s.Counts[len(s.Counts)-1]
			}
			s.Sum = value.Draw(t, "sum")
		case KindSummary:
			for range f.Bounds {
				s.Quantiles = append(s.Quantiles, value.Draw(t, "quantile"))
			}
			s.Count, s.Sum = rapid.Uint64Range(0, 1<<40).Draw(t, "count"), value.Draw(t, "sum")
		default:
			s.Value = value.Draw(t, "value")
		}
		f.Samples = append(f.Samples, s)
	}
	return f
}

// official is a family in the types of the official library.
func official(f Family) *dto.MetricFamily {
	kind := dto.MetricType(dto.MetricType_value[strings.ToUpper(string(f.Kind))])
	out := &dto.MetricFamily{Name: &f.Name, Help: &f.Help, Type: &kind}
	for _, s := range f.Samples {
		m := &dto.Metric{}
		for i, v := range s.Values {
			m.Label = append(m.Label, &dto.LabelPair{Name: &f.Labels[i], Value: &v})
		}
		switch f.Kind {
		case KindCounter:
			m.Counter = &dto.Counter{Value: &s.Value}
		case KindGauge:
			m.Gauge = &dto.Gauge{Value: &s.Value}
		case KindHistogram:
			m.Histogram = &dto.Histogram{SampleCount: &s.Count, SampleSum: &s.Sum}
			var below uint64
			for i, bound := range slices.Concat(f.Bounds, []float64{math.Inf(1)}) {
				below += s.Counts[i]
				m.Histogram.Bucket = append(m.Histogram.Bucket, &dto.Bucket{UpperBound: &bound, CumulativeCount: new(below)})
			}
		case KindSummary:
			m.Summary = &dto.Summary{SampleCount: &s.Count, SampleSum: &s.Sum}
			for i, q := range f.Bounds {
				m.Summary.Quantile = append(m.Summary.Quantile, &dto.Quantile{Quantile: &q, Value: &s.Quantiles[i]})
			}
		}
		out.Metric = append(out.Metric, m)
	}
	return out
}
