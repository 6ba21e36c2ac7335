package gateway

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// traced answers a request inside a span that hangs below the one the agent named in
// `_meta`. Attribute names are those of OpenTelemetry's conventions for MCP.
func (g *Gateway) traced(ctx context.Context, method string, p *mcp.Params, version string, serve func(context.Context) response) response {
	ctx = propagation.TraceContext{}.Extract(ctx, &wire.TraceMeta{Meta: p.Meta})
	ctx, span := g.opt.Tracer.Start(ctx, p.SpanName(method), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("mcp.method.name", method),
		attribute.String("mcp.protocol.version", version),
	))
	defer span.End()
	if method == mcp.MethodToolsCall {
		span.SetAttributes(attribute.String("gen_ai.tool.name", p.Name))
	}
	a := serve(ctx)
	switch {
	case a.err != nil:
		span.SetAttributes(attribute.String("error.type", strconv.FormatInt(a.err.Code, 10)))
		span.SetStatus(codes.Error, "answered with an error")
	case a.none:
		span.SetAttributes(attribute.String("error.type", "cancelled"))
	case method == mcp.MethodToolsCall && string(member(a.result, "isError")) == "true":
		span.SetAttributes(attribute.String("error.type", "tool_error"))
		span.SetStatus(codes.Error, "the tool says that it failed")
	}
	return a
}
