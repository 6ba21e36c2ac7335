package cli

import (
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
)

// BenchmarkMetrics is what counting costs a call.
func BenchmarkMetrics(b *testing.B) {
	m := newMetrics(&config.Config{Servers: []config.Server{{Name: "math"}}})
	f := policy.Finished{Key: host.Key{Server: "math"}, Outcome: policy.OutcomeOK, Took: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		m.onCall(f)
	}
}
