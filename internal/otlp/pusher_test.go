package otlp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/usher-mcp/usher/internal/meter"
)

func TestPusher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []float64
		failed := 0
		c := clientTo(t, func(body []byte) answer {
			got := &metricspb.MetricsData{}
			if err := proto.Unmarshal(body, got); err != nil {
				t.Error(err)
			}
			sent = append(sent, got.ResourceMetrics[0].ScopeMetrics[0].Metrics[0].GetSum().DataPoints[0].GetAsDouble())
			if len(sent) == 2 {
				return answer{code: 400}
			}
			return answer{code: 200}
		})
		r := meter.New()
		calls := r.Counters("calls_total", "h").With()
		calls.Inc()
		p := &Pusher{Client: c, Registry: r, OnError: func(error) { failed++ }}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Run(ctx) }()
		time.Sleep(90 * time.Second)
		calls.Inc()
		time.Sleep(2 * time.Minute)
		cancel()
		<-done
		if err := p.Push(t.Context()); err != nil {
			t.Error(err)
		}
		if len(sent) != 4 || sent[0] != 1 || sent[3] != 2 || failed != 1 {
			t.Errorf("sent %v, failed %d", sent, failed)
		}
	})
}

func TestPusherTimes(t *testing.T) {
	var p Pusher
	env := map[string]string{"OTEL_METRIC_EXPORT_INTERVAL": "1500", "OTEL_METRIC_EXPORT_TIMEOUT": " 10 "}
	if err := p.ReadTimes(lookup(env)); err != nil || p.Every != 1500*time.Millisecond || p.Timeout != 10*time.Millisecond {
		t.Errorf("%v: every %v for %v", err, p.Every, p.Timeout)
	}
	for _, bad := range []string{"0", "-1", "1m"} {
		if err := p.ReadTimes(lookup(map[string]string{"OTEL_METRIC_EXPORT_INTERVAL": bad})); err == nil {
			t.Errorf("%q is taken for a time", bad)
		}
	}
}
