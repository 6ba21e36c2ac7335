package upstream

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// headerTable knows which arguments of which tools travel in headers. It is
// replaced as a whole by the caller that has read a tool list.
type headerTable struct {
	byTool atomic.Pointer[map[string][]wire.HeaderParam]
}

// requestHeader mirrors what intermediaries may look at: method, name, and the
// annotated arguments of a tool.
func (c *Conn) requestHeader(method string, p *mcp.Params) http.Header {
	h := make(http.Header, headerRoom)
	h[wire.HeaderMethod] = []string{method}
	if name, ok := p.NameFor(method); ok {
		h[wire.HeaderName] = []string{wire.EncodeHeader(name)}
	}
	if method != mcp.MethodToolsCall {
		return h
	}
	table := c.tools.byTool.Load()
	if table == nil {
		return h
	}
	wire.HeaderValues((*table)[p.Name], p.Arguments, func(hp wire.HeaderParam, value string) { h.Set(hp.Header(), value) })
	return h
}

// LearnTools tells the connection the raw tool definitions it may call, from a
// list of its own or from a catalog. It returns those that can be offered: a tool
// whose header annotations break the rules is left out, as the specification
// demands of clients on HTTP.
func (c *Conn) LearnTools(tools [][]byte) [][]byte {
	if !c.mirrorsHeaders() {
		return tools
	}
	var table map[string][]wire.HeaderParam // of most servers there is none
	valid := make([][]byte, 0, len(tools))
	var left error // why the first one is left out
	for _, tool := range tools {
		schema, _ := jsonx.Get(tool, "inputSchema")
		params, err := wire.HeaderParams(schema)
		name := jsonx.GetText(tool, "name")
		if err != nil {
			if left == nil {
				left = fmt.Errorf("%.100q: %w", name, err)
			}
			continue
		}
		if len(params) > 0 {
			if table == nil {
				table = map[string][]wire.HeaderParam{}
			}
			table[name] = params
		}
		valid = append(valid, tool)
	}
	if left != nil {
		c.log.Warn("tools are left out: their header annotations are invalid", "count", len(tools)-len(valid), "first", left)
	}
	if table == nil {
		c.tools.byTool.Store(nil)
	} else {
		c.tools.byTool.Store(&table)
	}
	return valid
}

// mirrorsHeaders reports whether this connection puts parts of a request into
// headers: HTTP of the modern era does.
func (c *Conn) mirrorsHeaders() bool {
	_, isHTTP := c.link.(*httpLink)
	return isHTTP && mcp.Stateless(c.version)
}
