package gateway

import (
	"context"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// tableKey names the table of an endpoint for an agent. Each principal has a table of
// its own, and each token with a scope: an error about a header must not tell of tools
// that the agent does not see.
func tableKey(e *endpoint, a *surface.Agent) string {
	switch {
	case len(a.Servers) == 0 && len(a.Tools) == 0:
		if a.Principal == authn.LocalPrincipal {
			return e.key
		}
		return e.key + "\x00principal " + a.Principal
	case a.Credential != "":
		return e.key + "\x00credential " + a.Credential
	}
	return e.key + "\x00owner " + owner(*a)
}

// maxListPages bounds the pages that are read to learn about headers.
const maxListPages = 100

// headerParams returns which arguments of a tool must stand in headers. Where no
// list has passed by yet it is asked for; if that fails nothing is demanded.
func (g *Gateway) headerParams(ctx context.Context, e *endpoint, a surface.Agent, tool string) []wire.HeaderParam {
	table := g.headers.Of(tableKey(e, &a))
	params, ask := table.Find(tool)
	if !ask {
		return params
	}
	req := mcp.Request{Method: mcp.MethodToolsList}
	for size := 0; size < limit.ServerListBytes; {
		result, err := e.view.Do(ctx, a, req)
		if err != nil {
			break
		}
		size += max(len(result), limit.ServerListBytes/maxListPages)
		table.Learn(result)
		cursor, more := jsonx.Get(result, "nextCursor")
		if !more {
			break
		}
		req.Params = jsonx.Set(nil, "cursor", cursor)
	}
	params, _ = table.Find(tool)
	return params
}
