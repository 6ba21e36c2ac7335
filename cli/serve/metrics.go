package serve

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/meter"
	"github.com/usher-mcp/usher/policy"
)

// otherServer is the label of whatever is in no configuration: agents may ask for any
// name, and must not make labels by that.
const otherServer = "other"

// metrics is what a serving usher counts. The rooms count by themselves; this names
// it. Tools and principals are no labels: there may be any number of them. They stand
// in the audit trail.
type metrics struct {
	registry *meter.Registry
	calls    *meter.Counters
	took     *meter.Histograms

	current atomic.Pointer[func() *config.Config] // whose servers may be labels
	mu      sync.Mutex                            // held while counted is replaced
	counted atomic.Pointer[map[fate]series]       // never changed, only replaced
}

// fate is how calls of a server end.
type fate struct{ server, outcome string }

// series is what a fate is counted in: found once, then only added to.
type series struct {
	calls *meter.Counter
	took  *meter.Histogram
}

func newMetrics(cfg *config.Config) *metrics {
	r := meter.New()
	m := &metrics{
		registry: r,
		calls:    r.Counters("usher_calls_total", "Calls of tools and uses of prompts and resources, by server and how they ended.", "outcome", "server"),
		took: r.Histograms("usher_call_duration_seconds", "How long calls took, by server.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}, "server"),
	}
	m.follow(func() *config.Config { return cfg })
	m.counted.Store(&map[fate]series{})
	r.Info("usher_build_info", "Always 1; the version is a label.", "version", cmdutil.Version().Number)
	r.AddRuntime()
	r.AddProcess()
	return m
}

// follow says where the configuration of the moment is.
func (m *metrics) follow(current func() *config.Config) { m.current.Store(&current) }

// onCall counts a finished call.
func (m *metrics) onCall(f policy.Finished) {
	s, ok := (*m.counted.Load())[fate{f.Key.Server, f.Outcome}]
	if !ok {
		s = m.find(fate{f.Key.Server, f.Outcome})
	}
	s.calls.Inc()
	s.took.Observe(f.Took.Seconds())
}

// find returns the series of a fate that has none of its own yet.
func (m *metrics) find(e fate) series {
	cfg := (*m.current.Load())()
	if !slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return s.Name == e.server }) {
		e.server = otherServer
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := *m.counted.Load()
	s, ok := known[e]
	if !ok {
		s = series{m.calls.With(e.outcome, e.server), m.took.With(e.server)}
		more := maps.Clone(known)
		more[e] = s
		m.counted.Store(&more)
	}
	return s
}

// counts are the counters of the rooms under their names for Prometheus.
func counts(h *app.App, g *gateway.Gateway) map[string]struct {
	help string
	get  func() int64
} {
	type count = struct {
		help string
		get  func() int64
	}
	return map[string]count{
		"usher_requests_modern_total":    {"Requests of agents with the stateless protocol (2026-07-28 and later).", func() int64 { return g.Stats().Stateless }},
		"usher_requests_legacy_total":    {"Requests of agents with the legacy protocol (up to 2025-11-25).", func() int64 { return g.Stats().Legacy }},
		"usher_requests_refused_total":   {"Requests that were rejected.", func() int64 { return g.Stats().Refused }},
		"usher_requests_limited_total":   {"Requests that were rate-limited (429).", func() int64 { return g.Stats().Limited }},
		"usher_requests_forwarded_total": {"Requests that were forwarded to the replica that has the session.", func() int64 { return g.Stats().Forwarded }},
		"usher_upstream_requests_total":  {"Requests to servers.", func() int64 { return h.Stats().Host.Requests }},
		"usher_upstream_retries_total":   {"Requests to servers that were retried.", func() int64 { return h.Stats().Host.Retries }},
		"usher_upstream_timeouts_total":  {"Requests to servers that timed out.", func() int64 { return h.Stats().Host.Timeouts }},
		"usher_upstream_unknown_total":   {"Requests to servers with unknown outcome.", func() int64 { return h.Stats().Host.OutcomeUnknown }},
		"usher_upstream_limited_total":   {"Responses of servers that were rate-limited (429).", func() int64 { return h.Stats().Host.RateLimited }},
		"usher_dials_total":              {"Attempts to connect to servers.", func() int64 { return h.Stats().Host.Dials }},
		"usher_dial_failures_total":      {"Attempts to connect that failed.", func() int64 { return h.Stats().Host.DialFailures }},
		"usher_connections_lost_total":   {"Connections to servers that were lost.", func() int64 { return h.Stats().Host.Losses }},
		"usher_circuits_opened_total":    {"Circuit breakers that opened.", func() int64 { return h.Stats().Host.CircuitOpened }},
		"usher_ejections_total":          {"Servers that were ejected because they were restarted too often.", func() int64 { return h.Stats().Host.Ejections }},
		"usher_token_requests_total":     {"Requests to token endpoints to refresh tokens.", func() int64 { return h.Stats().Auth.Asked }},
		"usher_token_renewals_total":     {"Access tokens that were refreshed.", func() int64 { return h.Stats().Auth.Renewed }},
		"usher_token_failures_total":     {"Token refreshes that failed and will be retried.", func() int64 { return h.Stats().Auth.Failed }},
		"usher_logins_ended_total":       {"Logins that the authorization server expired or revoked.", func() int64 { return h.Stats().Auth.Ended }},
		"usher_cache_hits_total":         {"Calls that were answered from the cache.", func() int64 { return h.Stats().Cache.Hits }},
		"usher_cache_misses_total":       {"Calls that the cache could not answer.", func() int64 { return h.Stats().Cache.Misses }},
		"usher_audit_written_total":      {"Calls written to the audit log.", func() int64 { return h.Stats().Audit.Written }},
		"usher_audit_lost_total":         {"Calls that could not be written to the audit log.", func() int64 { return h.Stats().Audit.Lost }},
	}
}

// watch adds what the rooms count.
func (m *metrics) watch(h *app.App, g *gateway.Gateway) {
	m.follow(h.Config)
	for name, c := range counts(h, g) {
		m.registry.CounterFunc(name, c.help, func() float64 { return float64(c.get()) })
	}
	gauge := m.registry.GaugeFunc
	gauge("usher_sessions", "Sessions of agents with the legacy protocol.", func() float64 { return float64(g.Stats().Sessions) })
	gauge("usher_parked_calls", "Suspended calls that wait for an answer from the agent.", func() float64 { return float64(g.Stats().Waiting) })
	gauge("usher_audit_waiting", "Calls that are not yet written to the audit log.", func() float64 { return float64(h.Stats().Audit.Waiting) })
	gauge("usher_store_up", "Whether the store is reachable.", func() float64 {
		if h.StoreStatus(context.Background()).Away {
			return 0
		}
		return 1
	})
	m.registry.Add(func() []meter.Family { return serverStates(h.Status().Servers) })
}

func (m *metrics) handler() http.Handler { return m.registry.Handler() }

// serverStates tells how the servers are.
func serverStates(servers []host.ServerStatus) []meter.Family {
	type at struct{ server, state string }
	states, busy := map[at]int{}, map[string]int{}
	for _, srv := range servers {
		states[at{srv.Name, string(srv.State)}]++
		busy[srv.Name] += srv.InFlight
	}
	connections := meter.Family{
		Name: "usher_server_connections", Help: "Connections to servers, by server and state.",
		Kind: meter.KindGauge, Labels: []string{"server", "state"},
	}
	for k, n := range states {
		connections.Samples = append(connections.Samples, meter.Sample{Values: []string{k.server, k.state}, Value: float64(n)})
	}
	inFlight := meter.Family{
		Name: "usher_server_in_flight", Help: "In-flight requests to servers.",
		Kind: meter.KindGauge, Labels: []string{"server"},
	}
	for name, n := range busy {
		inFlight.Samples = append(inFlight.Samples, meter.Sample{Values: []string{name}, Value: float64(n)})
	}
	return []meter.Family{connections, inFlight}
}
