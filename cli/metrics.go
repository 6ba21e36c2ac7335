package cli

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/usher-mcp/usher"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
)

// metrics is what a serving usher counts for Prometheus. The rooms count by
// themselves; this names it. Tools and principals are no labels: there may be any
// number of them. They stand in the audit trail.
type metrics struct {
	registry *prometheus.Registry
	servers  map[string]bool // names that may be labels
	calls    *prometheus.CounterVec
	took     *prometheus.HistogramVec
}

func newMetrics(cfg *config.Config) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		servers:  map[string]bool{},
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "usher_calls_total", Help: "Calls of tools and uses of prompts and resources, by server and how they ended.",
		}, []string{"server", "outcome"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "usher_call_duration_seconds", Help: "How long calls took, by server.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"server"}),
	}
	for _, s := range cfg.Servers {
		m.servers[s.Name] = true
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "usher_build_info", Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": Version().Number},
	})
	info.Set(1)
	m.registry.MustRegister(m.calls, m.took, info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// onCall counts a finished call.
func (m *metrics) onCall(f policy.Finished) {
	server := f.Key.Server
	if !m.servers[server] {
		server = "other"
	}
	m.calls.WithLabelValues(server, f.Outcome).Inc()
	m.took.WithLabelValues(server).Observe(f.Took.Seconds())
}

// counts are the counters of the rooms under their names for Prometheus.
func counts(h *usher.Host, g *gateway.Gateway) map[string]struct {
	help string
	get  func() int64
} {
	type count = struct {
		help string
		get  func() int64
	}
	return map[string]count{
		"usher_requests_modern_total":    {"Requests of agents of revision 2026-07-28 and later.", func() int64 { return g.Stats().Modern }},
		"usher_requests_legacy_total":    {"Requests of agents of older revisions.", func() int64 { return g.Stats().Legacy }},
		"usher_requests_refused_total":   {"Requests that were not let in.", func() int64 { return g.Stats().Refused }},
		"usher_requests_limited_total":   {"Requests that were answered 429.", func() int64 { return g.Stats().Limited }},
		"usher_requests_forwarded_total": {"Requests that were handed on to the replica that has the session.", func() int64 { return g.Stats().Forwarded }},
		"usher_upstream_requests_total":  {"Requests to servers.", func() int64 { return h.Stats().Host.Requests }},
		"usher_upstream_retries_total":   {"Requests to servers that were repeated.", func() int64 { return h.Stats().Host.Retries }},
		"usher_upstream_timeouts_total":  {"Requests to servers that took too long.", func() int64 { return h.Stats().Host.Timeouts }},
		"usher_upstream_unknown_total":   {"Requests of which nobody knows whether they ran.", func() int64 { return h.Stats().Host.OutcomeUnknown }},
		"usher_upstream_limited_total":   {"Answers 429 of servers.", func() int64 { return h.Stats().Host.RateLimited }},
		"usher_dials_total":              {"Attempts to connect to servers.", func() int64 { return h.Stats().Host.Dials }},
		"usher_dial_failures_total":      {"Attempts to connect that failed.", func() int64 { return h.Stats().Host.DialFailures }},
		"usher_connections_lost_total":   {"Connections that ended by themselves.", func() int64 { return h.Stats().Host.Losses }},
		"usher_circuits_opened_total":    {"Circuits that opened.", func() int64 { return h.Stats().Host.CircuitOpened }},
		"usher_ejections_total":          {"Servers that were restarted too often.", func() int64 { return h.Stats().Host.Ejections }},
		"usher_token_requests_total":     {"Requests to token endpoints for renewals.", func() int64 { return h.Stats().Auth.Asked }},
		"usher_token_renewals_total":     {"Logins that were renewed.", func() int64 { return h.Stats().Auth.Renewed }},
		"usher_token_failures_total":     {"Renewals that failed and are tried again.", func() int64 { return h.Stats().Auth.Failed }},
		"usher_logins_ended_total":       {"Logins that their authorization server has ended.", func() int64 { return h.Stats().Auth.Ended }},
		"usher_cache_hits_total":         {"Calls that were answered from the cache.", func() int64 { return h.Stats().Cache.Hits }},
		"usher_cache_misses_total":       {"Calls that the cache could not answer.", func() int64 { return h.Stats().Cache.Misses }},
		"usher_audit_written_total":      {"Calls that the audit trail has.", func() int64 { return h.Stats().Audit.Written }},
		"usher_audit_lost_total":         {"Calls that the audit trail could not keep.", func() int64 { return h.Stats().Audit.Lost }},
	}
}

// watch adds what the rooms count.
func (m *metrics) watch(h *usher.Host, g *gateway.Gateway) {
	for name, c := range counts(h, g) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: c.help}, func() float64 { return float64(c.get()) }))
	}
	gauge := func(name, help string, get func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, get))
	}
	gauge("usher_sessions", "Sessions of agents of older revisions.", func() float64 { return float64(g.Stats().Sessions) })
	gauge("usher_parked_calls", "Calls that wait for an agent's answer.", func() float64 { return float64(g.Stats().Waiting) })
	gauge("usher_audit_waiting", "Calls that are not in the audit trail yet.", func() float64 { return float64(h.Stats().Audit.Waiting) })
	gauge("usher_store_up", "Whether the store can be reached.", func() float64 {
		if h.StoreReport(context.Background()).Away {
			return 0
		}
		return 1
	})
	m.registry.MustRegister(&serverStates{h})
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// serverStates collects how the servers are.
type serverStates struct{ h *usher.Host }

func stateDesc() *prometheus.Desc {
	return prometheus.NewDesc("usher_server_connections", "Connections to servers, by server and state.", []string{"server", "state"}, nil)
}

func inFlightDesc() *prometheus.Desc {
	return prometheus.NewDesc("usher_server_in_flight", "Requests to servers that are under way.", []string{"server"}, nil)
}

// Describe implements prometheus.Collector.
func (s *serverStates) Describe(ch chan<- *prometheus.Desc) {
	ch <- stateDesc()
	ch <- inFlightDesc()
}

// Collect implements prometheus.Collector.
func (s *serverStates) Collect(ch chan<- prometheus.Metric) {
	type at struct {
		server string
		state  host.State
	}
	states, busy := map[at]int{}, map[string]int{}
	for _, srv := range s.h.Status().Servers {
		states[at{srv.Name, srv.State}]++
		busy[srv.Name] += srv.InFlight
	}
	for k, n := range states {
		ch <- prometheus.MustNewConstMetric(stateDesc(), prometheus.GaugeValue, float64(n), k.server, string(k.state))
	}
	for name, n := range busy {
		ch <- prometheus.MustNewConstMetric(inFlightDesc(), prometheus.GaugeValue, float64(n), name)
	}
}
