package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/lmittmann/tint"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/internal/app"
)

// telemetry is what a serving usher tells about itself, beside what it answers.
type telemetry struct {
	log      *slog.Logger
	metrics  *metrics
	*sending // what goes to a collector
}

// Observe has the opened app log, count and trace.
func (t *telemetry) Observe(opt *app.Options) {
	opt.Log, opt.OnCall, opt.Tracer = t.log, t.metrics.onCall, t.tracer
}

// StopTraces sends the spans that are left.
func (t *telemetry) StopTraces() { t.flushTraces(t.log) }

// newTelemetry reads the settings. Nothing is reached yet.
func newTelemetry(ctx context.Context, f *cmdutil.Factory, cfg *config.Config) (*telemetry, error) {
	env := f.IO.System.WithDefaults().LookupEnv
	set, err := config.Settings{Telemetry: cfg.Usher.Telemetry}.Resolve(ctx, config.Lookup{Env: env}, "")
	if err != nil {
		return nil, err
	}
	t := &telemetry{log: servingLogger(f, set.Telemetry), metrics: newMetrics(cfg)}
	t.sending, err = newSending(ctx, set.Telemetry, env, t.metrics.registry, t.log)
	switch {
	case err == nil:
	case set.Telemetry.Endpoint != "":
		return nil, cmdutil.WithHint(fmt.Errorf("telemetry: %w", err), "check telemetry under usher in the configuration, and the variables OTEL_…")
	default: // the variables may be meant for others
		t.log.Warn("neither traces nor metrics are sent", "error", err)
	}
	return t, nil
}

// serveTelemetry serves what operators ask for on an address of its own, until stop.
func serveTelemetry(ctx context.Context, f *cmdutil.Factory, addr string, g *gateway.Gateway, m *metrics) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, cmdutil.WithHint(err, "choose another address with --metrics")
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", m.handler())
	mux.Handle("/", g.Health())
	srv := g.NewServer(mux)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(g.LimitConns(l)) // ends with Close
	}()
	f.Note("metrics on http://%s/metrics", l.Addr())
	return func() {
		_ = srv.Close()
		<-done
	}, nil
}

// servingLogger writes to standard error, in the form and from the level that the
// settings say.
func servingLogger(f *cmdutil.Factory, t config.Telemetry) *slog.Logger {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(t.LogLevel)) // checked when it was read
	if f.Verbose {
		level = slog.LevelDebug
	}
	if t.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(f.IO.Err, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(tint.NewTextHandler(f.IO.Err, &tint.Options{Level: level, NoColor: !f.IO.ErrTTY}))
}
