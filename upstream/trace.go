package upstream

import (
	"context"
	"errors"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// trace begins the span of a request and puts it into its `_meta`, so that the
// server's own spans hang below it. Attribute names are those of OpenTelemetry's
// conventions for MCP.
func (c *Conn) trace(ctx context.Context, req *mcp.Request, version string) (context.Context, trace.Span) {
	p, _ := mcp.ReadParams(req.Params) // what is wrong with them is said later
	ctx, span := c.opt.Tracer.Start(ctx, p.SpanName(req.Method), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("mcp.method.name", req.Method),
		attribute.String("mcp.protocol.version", version),
		attribute.String("server.address", c.server.Name),
	))
	if req.Method == mcp.MethodToolsCall {
		span.SetAttributes(attribute.String("gen_ai.tool.name", p.Name))
	}
	var meta wire.TraceMeta
	propagation.TraceContext{}.Inject(ctx, &meta)
	req.Params = meta.Into(req.Params)
	return ctx, span
}

// endSpan says how the request ended.
func endSpan(span trace.Span, err error) {
	var answer *mcp.Error
	switch {
	case errors.As(err, &answer):
		span.SetAttributes(attribute.String("error.type", strconv.FormatInt(answer.Code, 10)))
		span.SetStatus(codes.Error, "the server answered with an error")
	case err != nil:
		span.SetAttributes(attribute.String("error.type", "transport"))
		span.SetStatus(codes.Error, "no answer came")
	}
	span.End()
}
