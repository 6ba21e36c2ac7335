package serve

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/meter"
	"github.com/usher-mcp/usher/internal/otlp"
)

// How long a program that ends waits for the collector to take the rest.
const (
	lastMetrics = 2 * time.Second
	lastTraces  = 5 * time.Second
)

// sending is what goes to a collector, if there is one.
type sending struct {
	tracer trace.Tracer // nil: no traces
	spans  *otlp.Client
	traces *sdktrace.TracerProvider

	pusher *otlp.Pusher // nil: no metrics
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// newSending prepares what the settings or the usual variables ask for.
func newSending(ctx context.Context, t config.Telemetry, env func(string) (string, bool), r *meter.Registry, log *slog.Logger) (*sending, error) {
	s := &sending{}
	traces, metrics, err := targets(t, env)
	if err != nil || traces == nil && metrics == nil {
		return s, err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "usher"), attribute.String("service.version", cmdutil.Version().Number)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return s, err
	}
	warnOfProtocol(env, log)
	scope := instrumentation.Scope{Name: "github.com/usher-mcp/usher", Version: cmdutil.Version().Number}
	agent := "usher/" + cmdutil.Version().Number
	if metrics != nil {
		p := &otlp.Pusher{Registry: r, About: about, Scope: scope, OnError: func(err error) { log.Warn("metrics were not sent", "error", err) }}
		if err := p.ReadTimes(env); err != nil {
			return s, err
		}
		p.Client = otlp.NewClient(metrics, agent)
		s.pusher = p
	}
	if traces != nil {
		s.spans = otlp.NewClient(traces, agent)
		s.traces = sdktrace.NewTracerProvider(
			sdktrace.WithBatcher(&otlp.SpanExporter{Client: s.spans}), sdktrace.WithResource(about),
			sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(t.SampleRatio))),
		)
		s.tracer = s.traces.Tracer(scope.Name, trace.WithInstrumentationVersion(scope.Version))
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces were not sent", "error", err) }))
	}
	return s, nil
}

// warnOfProtocol tells a user who wants another form that there is only one: what it is
// sent to may not understand it.
func warnOfProtocol(env func(string) (string, bool), log *slog.Logger) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"} {
		if v, _ := env(name); v != "" && v != "http/protobuf" {
			log.Warn("telemetry is sent as http/protobuf only", "variable", name, "value", v)
		}
	}
}

// targets finds where traces and metrics go; nil: nowhere.
func targets(t config.Telemetry, env func(string) (string, bool)) (traces, metrics *otlp.Target, err error) {
	if off, _ := env("OTEL_SDK_DISABLED"); strings.EqualFold(strings.TrimSpace(off), "true") {
		return nil, nil, nil
	}
	s := &otlp.Settings{Endpoint: t.Endpoint, Headers: t.Headers, Env: env}
	if exported(env, "OTEL_TRACES_EXPORTER") {
		if traces, err = otlp.TargetOf(otlp.Traces, s); err != nil {
			return nil, nil, err
		}
	}
	if exported(env, "OTEL_METRICS_EXPORTER") {
		if metrics, err = otlp.TargetOf(otlp.Metrics, s); err != nil {
			return nil, nil, err
		}
	}
	return traces, metrics, nil
}

// exported reads a list of exporters, of which we have one. It is the default.
func exported(env func(string) (string, bool), name string) bool {
	list, _ := env(name)
	return strings.TrimSpace(list) == "" || slices.ContainsFunc(strings.Split(list, ","), func(one string) bool {
		return strings.TrimSpace(one) == "otlp"
	})
}

// start begins to send metrics: once all that is counted has been added.
func (s *sending) start() {
	if s.pusher == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.wg.Go(func() { s.pusher.Run(ctx) })
}

// StopMetrics sends the last figures, while there is still a host to ask for them.
func (s *sending) StopMetrics() {
	if s.cancel == nil {
		return
	}
	s.cancel()
	s.wg.Wait()
	s.cancel = nil
	ctx, stop := context.WithTimeout(context.Background(), lastMetrics)
	defer stop()
	s.pusher.Client.Hurry()
	if err := s.pusher.Push(ctx); err != nil {
		s.pusher.OnError(err)
	}
	s.pusher.Client.Close()
}

// flushTraces sends the spans that are left.
func (s *sending) flushTraces(log *slog.Logger) {
	if s.traces == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), lastTraces)
	defer stop()
	s.spans.Hurry()
	if err := s.traces.Shutdown(ctx); err != nil {
		log.Warn("the last traces were not sent", "error", err)
	}
}
