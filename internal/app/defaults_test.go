package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/surface"
)

// A setting has the same default in a configuration file and in the options of the
// package that uses it.
func TestOneDefaultPerSetting(t *testing.T) {
	s := config.DefaultSettings()
	g := s.Gateway
	got := map[string]any{
		"maxConnected": host.DefaultMaxConnected, "maxConcurrentCalls": gateway.DefaultMaxCalls, "maxBodyBytes": int64(gateway.DefaultMaxBody),
		"sessionIdle": gateway.DefaultSessionIdle, "drainTimeout": gateway.DefaultGrace,
		"tokenBudget": surface.DefaultTokenBudget, "separator": surface.DefaultSeparator,
	}
	want := map[string]any{
		"maxConnected": s.MaxConnected, "maxConcurrentCalls": g.MaxConcurrentCalls, "maxBodyBytes": g.MaxBodyBytes,
		"sessionIdle": g.SessionIdle, "drainTimeout": g.DrainTimeout,
		"tokenBudget": g.TokenBudget, "separator": g.Separator,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-configuration +options)\n%s", diff)
	}
}
