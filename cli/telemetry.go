package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/gateway"
)

// telemetry is what a serving usher tells about itself, beside what it answers.
type telemetry struct {
	log     *slog.Logger
	metrics *metrics
	tracer  trace.Tracer // nil: no traces
	traces  *sdktrace.TracerProvider
}

// newTelemetry reads the settings. Nothing is reached yet.
func (a *app) newTelemetry(ctx context.Context, cfg *config.Config) (*telemetry, error) {
	env := a.io.System.WithDefaults().LookupEnv
	set, err := config.Settings{Telemetry: cfg.Usher.Telemetry}.Resolve(ctx, config.Lookup{Env: env}, "")
	if err != nil {
		return nil, err
	}
	t := &telemetry{log: a.servingLogger(set.Telemetry), metrics: newMetrics(cfg)}
	if !wantsTraces(set.Telemetry, env) {
		return t, nil
	}
	if t.traces, err = newTraces(ctx, set.Telemetry); err != nil {
		return nil, withHint(fmt.Errorf("send traces to %s: %w", set.Telemetry.Endpoint, err), "check telemetry.endpoint under usher in the configuration")
	}
	t.tracer = t.traces.Tracer("github.com/usher-mcp/usher", trace.WithInstrumentationVersion(Version().Number))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { t.log.Warn("traces cannot be sent", "error", err) }))
	return t, nil
}

// wantsTraces: the settings or the usual variables name a collector.
func wantsTraces(t config.Telemetry, env func(string) (string, bool)) bool {
	if off, _ := env("OTEL_SDK_DISABLED"); strings.EqualFold(off, "true") {
		return false
	}
	if t.Endpoint != "" {
		return true
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		if v, _ := env(name); v != "" {
			return true
		}
	}
	return false
}

func newTraces(ctx context.Context, t config.Telemetry) (*sdktrace.TracerProvider, error) {
	var opts []otlptracehttp.Option // without any, the exporter reads the variables
	if t.Endpoint != "" {
		u, err := url.Parse(t.Endpoint)
		if err != nil {
			return nil, err
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/v1/traces"
		}
		opts = append(opts, otlptracehttp.WithEndpointURL(u.String()))
	}
	if len(t.Headers) > 0 {
		opts = append(opts, otlptracehttp.WithHeaders(t.Headers))
	}
	exporter, err := otlptracehttp.New(ctx, opts...)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "usher"), attribute.String("service.version", Version().Number)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	return sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), sdktrace.WithResource(about),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(t.SampleRatio))),
	), nil
}

// close sends what is left.
func (t *telemetry) close() {
	if t.traces == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	if err := t.traces.Shutdown(ctx); err != nil {
		t.log.Warn("the last traces were not sent", "error", err)
	}
}

// serveTelemetry serves what operators ask for on an address of its own, until stop.
func (a *app) serveTelemetry(ctx context.Context, addr string, g *gateway.Gateway) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, withHint(err, "choose another address with --metrics")
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", a.telling.metrics.handler())
	mux.Handle("/", g.Health())
	srv := g.NewServer(mux)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // ends with Close
	}()
	a.note("metrics on http://%s/metrics", l.Addr())
	return func() {
		_ = srv.Close()
		<-done
	}, nil
}

// servingLogger writes to standard error, in the form and from the level that the
// settings say.
func (a *app) servingLogger(t config.Telemetry) *slog.Logger {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(t.LogLevel)) // checked when it was read
	if a.verbose {
		level = slog.LevelDebug
	}
	if t.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.io.Err, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(tint.NewTextHandler(a.io.Err, &tint.Options{Level: level, NoColor: !a.io.ErrTTY}))
}
