package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector keeps what it is sent, by path.
type collector struct {
	*httptest.Server
	mu     sync.Mutex // guards bodies, keys
	bodies map[string][][]byte
	keys   map[string]bool // values of X-Key
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{bodies: map[string][][]byte{}, keys: map[string]bool{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a broken one fails below
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], body)
		c.keys[r.Header.Get("X-Key")] = true
	}))
	t.Cleanup(c.Close)
	return c
}

// spans are the names of what came.
func (c *collector) spans(t *testing.T) (names []string) {
	t.Helper()
	for _, body := range c.bodies["/v1/traces"] {
		data := &tracepb.TracesData{}
		if err := proto.Unmarshal(body, data); err != nil {
			t.Fatal(err)
		}
		for _, r := range data.ResourceSpans {
			if !strings.Contains(r.Resource.String(), "usher") {
				t.Errorf("sent by %v", r.Resource)
			}
			for _, s := range r.ScopeSpans {
				for _, span := range s.Spans {
					names = append(names, span.Name)
				}
			}
		}
	}
	return names
}

// metrics are the latest ones, by name.
func (c *collector) metrics(t *testing.T) map[string]*metricspb.Metric {
	t.Helper()
	out := map[string]*metricspb.Metric{}
	for _, body := range c.bodies["/v1/metrics"] {
		data := &metricspb.MetricsData{}
		if err := proto.Unmarshal(body, data); err != nil {
			t.Fatal(err)
		}
		for _, m := range data.ResourceMetrics[0].ScopeMetrics[0].Metrics {
			out[m.Name] = m
		}
	}
	return out
}

// Traces and metrics go to the collector that the settings or the usual variables
// name, with their headers, and the last ones when usher ends.
func TestTelemetryIsSent(t *testing.T) {
	for _, how := range []string{"settings", "variables"} {
		t.Run(how, func(t *testing.T) {
			c := newCollector(t)
			settings := map[string]any{"endpoint": c.URL, "headers": map[string]string{"x-key": "${env:KEY}"}}
			env := map[string]string{"KEY": "k1"}
			if how == "variables" {
				settings, env = nil, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=k1"}
			}
			s := serveHere(t, settings, env)
			s.callAdd(t)
			s.stop()
			if names := strings.Join(c.spans(t), "\n"); !strings.Contains(names, "tools/call add") || len(c.keys) != 1 || !c.keys["k1"] {
				t.Errorf("spans %q with keys %v", names, c.keys)
			}
			m := c.metrics(t)
			calls := m["usher_calls_total"].GetSum()
			if calls == nil || !calls.IsMonotonic || calls.DataPoints[0].GetAsDouble() != 1 || len(calls.DataPoints[0].Attributes) != 2 {
				t.Errorf("calls %v", m["usher_calls_total"])
			}
			if took := m["usher_call_duration_seconds"].GetHistogram(); took == nil || took.DataPoints[0].Count != 1 {
				t.Errorf("took %v", took)
			}
			if up := m["usher_store_up"].GetGauge(); up == nil || up.DataPoints[0].GetAsDouble() != 1 {
				t.Errorf("store %v", up)
			}
			if m["go_goroutines"] == nil || m["process_cpu_seconds_total"] == nil {
				t.Errorf("%d metrics", len(m))
			}
		})
	}
}

// Every now and then, not only at the end.
func TestMetricsAreSentAgain(t *testing.T) {
	came := make(chan struct{}, 2)
	c := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/figures" {
			return
		}
		select {
		case came <- struct{}{}:
		default: // often enough
		}
	}))
	defer c.Close()
	s := serveHere(t, nil, map[string]string{
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": c.URL + "/figures", "OTEL_METRIC_EXPORT_INTERVAL": "10",
	})
	<-came
	<-came
	s.stop()
}

func TestTelemetryIsNotSent(t *testing.T) {
	for _, tt := range []struct {
		name            string
		env             map[string]string
		traces, metrics bool
		log             string
	}{
		{"no metrics", map[string]string{"OTEL_METRICS_EXPORTER": "none"}, true, false, ""},
		{"no traces", map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "prometheus, otlp"}, false, true, ""},
		{"nothing", map[string]string{"OTEL_SDK_DISABLED": "True"}, false, false, ""},
		{"broken", map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}, false, false, "OTEL_EXPORTER_OTLP_TIMEOUT"},
		{"broken interval", map[string]string{"OTEL_METRIC_EXPORT_INTERVAL": "often"}, false, false, "OTEL_METRIC_EXPORT_INTERVAL"},
		{"another form", map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, true, true, "http/protobuf only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCollector(t)
			tt.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = c.URL
			s := serveHere(t, nil, tt.env)
			s.callAdd(t)
			if log := s.stop(); !strings.Contains(s.before+log, tt.log) {
				t.Errorf("log %q", s.before+log)
			}
			if got := len(c.bodies["/v1/traces"]) > 0; got != tt.traces {
				t.Errorf("traces were sent: %v", got)
			}
			if got := len(c.bodies["/v1/metrics"]) > 0; got != tt.metrics {
				t.Errorf("metrics were sent: %v", got)
			}
		})
	}
}
