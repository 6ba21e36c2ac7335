package serve

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/meter"
	"github.com/usher-mcp/usher/policy"
)

func finishedAt(server, outcome string) policy.Finished {
	return policy.Finished{Key: host.Key{Server: server}, Outcome: outcome, Took: time.Millisecond}
}

// BenchmarkMetrics is what counting costs a call.
func BenchmarkMetrics(b *testing.B) {
	m := newMetrics(&config.Config{Servers: []config.Server{{Name: "math"}}})
	f := finishedAt("math", policy.OutcomeOK)
	b.ReportAllocs()
	for b.Loop() {
		m.onCall(f)
	}
}

// BenchmarkMetricsOfManyServers is what it costs when every processor counts for a
// server of its own.
func BenchmarkMetricsOfManyServers(b *testing.B) {
	m := newMetrics(&config.Config{Servers: []config.Server{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}})
	names := make(chan string, 1024)
	for len(names) < cap(names) {
		names <- string(rune('a' + len(names)%4))
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		f := finishedAt(<-names, policy.OutcomeOK)
		for pb.Next() {
			m.onCall(f)
		}
	})
}

// Only servers of the configuration are labels, also those that were added since.
func TestLabelsAreServersThatExist(t *testing.T) {
	cfg := &config.Config{Servers: []config.Server{{Name: "math"}}}
	m := newMetrics(cfg)
	m.onCall(finishedAt("math", policy.OutcomeOK))
	m.onCall(finishedAt("new", policy.OutcomeOK))
	m.onCall(finishedAt("guess", policy.OutcomeDenied))
	later := &config.Config{Servers: []config.Server{{Name: "math"}, {Name: "new"}}}
	m.follow(func() *config.Config { return later })
	m.onCall(finishedAt("new", policy.OutcomeOK))
	m.onCall(finishedAt("new", policy.OutcomeOK))
	m.onCall(finishedAt("guess", policy.OutcomeDenied))
	got := map[string]float64{}
	for _, f := range m.registry.Gather() {
		for _, s := range f.Samples {
			switch f.Name {
			case "usher_calls_total":
				got[strings.Join(s.Values, " ")] = s.Value
			case "usher_call_duration_seconds":
				got["took "+s.Values[0]] = float64(s.Count)
			}
		}
	}
	want := map[string]float64{
		"ok math": 1, "ok new": 2, "ok other": 1, "denied other": 2,
		"took math": 1, "took new": 2, "took other": 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A scrape of many servers stays a matter of milliseconds.
func BenchmarkScrape(b *testing.B) {
	cfg := &config.Config{}
	for i := range 1000 {
		cfg.Servers = append(cfg.Servers, config.Server{Name: fmt.Sprint("server", i)})
	}
	m := newMetrics(cfg)
	for _, s := range cfg.Servers {
		m.onCall(finishedAt(s.Name, policy.OutcomeOK))
	}
	b.ReportAllocs()
	var text []byte
	for b.Loop() {
		text = meter.AppendText(text[:0], m.registry.Gather())
	}
	if !bytes.Contains(text, []byte("usher_calls_total")) {
		b.Error("nothing was told")
	}
}
