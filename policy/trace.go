package policy

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/usher-mcp/usher/mcp"
)

// traceHit makes the span of a request that the cache answered. It has the name and
// the attributes of a span of a request to the server, and usher.cache.hit.
func (g *Gate) traceHit(ctx context.Context, q *query) {
	if g.opt.Tracer == nil {
		return
	}
	p, _ := mcp.ReadParams(q.request.Params) // they have been read before
	_, span := g.opt.Tracer.Start(ctx, p.SpanName(q.method), trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(
		attribute.String("mcp.method.name", q.method),
		attribute.String("server.address", q.server),
		attribute.Bool("usher.cache.hit", true),
	))
	if q.method == mcp.MethodToolsCall {
		span.SetAttributes(attribute.String("gen_ai.tool.name", q.tool))
	}
	span.End()
}
