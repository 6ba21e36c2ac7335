package surface

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
	"github.com/usher-mcp/usher/surface/internal/result"
)

// meta shows one constant tool through which all others are found and called.
type meta struct{ endpoint }

// metaTTL is how long the list with the one tool may be kept.
const metaTTL = time.Hour

// Info implements [View].
func (m *meta) Info(context.Context, Agent) (Info, error) {
	return Info{
		Server: m.serverInfo(), Capabilities: []byte(`{"tools":{},"logging":{}}`), TTL: metaTTL, Public: true,
		Instructions: `Many MCP servers stand behind the tool "mcp". Start with {"action":"search","query":"…"}.`,
	}, nil
}

// Do implements [View].
func (m *meta) Do(ctx context.Context, a Agent, r mcp.Request) ([]byte, error) {
	a = m.agent(a)
	switch r.Method {
	case mcp.MethodPing:
		return result.Empty(a.Version), nil
	case mcp.MethodSetLevel:
		return m.s.setLevel(ctx, a, r.Params)
	case mcp.MethodToolsList:
		return m.list(a, r.Params)
	case mcp.MethodToolsCall:
		return m.call(ctx, a, r)
	}
	return nil, mcp.Errorf(mcp.CodeMethodNotFound, "method %s is not offered here", r.Method)
}

func (m *meta) list(a Agent, params []byte) ([]byte, error) {
	p, werr := mcp.ReadParams(params)
	switch {
	case werr != nil:
		return nil, werr
	case p.Cursor != nil:
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "unknown cursor %.40s: the list has one page", p.Cursor)
	}
	out := []byte(`{"tools":[` + metaTool + `]}`)
	if mcp.Stateless(a.Version) {
		out = result.AppendFresh(out, metaTTL, true)
	}
	return out, nil
}

// input is what the tool was called with.
type input struct {
	action, server, tool, query, redirectURL string
	limit                                    int
	arguments                                []byte // nil when absent or null
}

func (m *meta) call(ctx context.Context, a Agent, r mcp.Request) ([]byte, error) {
	p, werr := mcp.ReadParams(r.Params)
	switch {
	case werr != nil:
		return nil, werr
	case p.Name != metaName:
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "unknown tool: %s; the only tool here is %s: call it with action %q, server and tool", p.Name, metaName, "call")
	}
	in, problem := readInput(p.Arguments)
	if problem != "" {
		return result.Text(a.Version, problem, true), nil
	}
	if in.action == "call" {
		return m.callTool(ctx, a, r, in)
	}
	text, failed := m.act(ctx, a, in)
	return result.Text(a.Version, text, failed), nil
}

// readInput reads the arguments and says what is wrong with them, "" when nothing
// is.
func readInput(args []byte) (in input, problem string) {
	if args == nil {
		return in, "`action` is missing. " + actionList
	}
	if t := jsonx.TypeOf(args); t != "object" {
		return in, "arguments must be an object, not " + t + ". " + actionList
	}
	texts := map[string]*string{
		"action": &in.action, "server": &in.server, "tool": &in.tool, "query": &in.query, "redirect_url": &in.redirectURL,
	}
	for m := jsonx.Object(args); m.Next(); {
		key := string(m.Key)
		switch to, known := texts[key]; {
		case string(m.Value) == "null":
		case known:
			text, ok := jsonx.StrictText(m.Value)
			if !ok {
				return in, fmt.Sprintf("`%s` must be a string, not %s.", key, jsonx.TypeOf(m.Value))
			}
			*to = text
		case key == "arguments":
			in.arguments = m.Value
		case key == "limit":
			if _, err := fmt.Sscan(string(m.Value), &in.limit); err != nil {
				return in, fmt.Sprintf("`limit` must be a number, not %s.", jsonx.TypeOf(m.Value))
			}
		}
	}
	return in, in.check()
}

var actions = []string{"help", "list_servers", "search", "list_tools", "describe_tool", "call", "status", "login", "complete_login"}

var actionList = "Actions: " + strings.Join(actions, ", ") + "."

// check says what an action lacks, "" when nothing.
func (in *input) check() string {
	var needs []string
	switch in.action {
	case "":
		return "`action` is missing. " + actionList
	case "help", "list_servers", "status":
	case "search":
		needs = []string{"query", in.query}
	case "list_tools", "login":
		needs = []string{"server", in.server}
	case "describe_tool", "call":
		needs = []string{"server", in.server, "tool", in.tool}
	case "complete_login":
		needs = []string{"server", in.server, "redirect_url", in.redirectURL}
	default:
		return fmt.Sprintf("There is no action %q%s %s", in.action, orStop(didYouMean(in.action, actions)), actionList)
	}
	for i := 0; i < len(needs); i += 2 {
		if strings.TrimSpace(needs[i+1]) == "" {
			return fmt.Sprintf("Action %s needs `%s`. %s", in.action, needs[i], in.next(needs[i]))
		}
	}
	return ""
}

// next says where to find what is missing.
func (in *input) next(missing string) string {
	switch missing {
	case "server":
		return "Use action list_servers for the names, or search to find a tool."
	case "tool":
		return fmt.Sprintf("Use action list_tools with server %q for the names.", in.server)
	case "query":
		return "Say in a few words what the tool should do."
	}
	return "It is the whole address that the browser ended on after the login."
}

// Listen implements [View]. The one tool never changes; what the servers of a lane
// say is passed on.
func (m *meta) Listen(ctx context.Context, a Agent, want Subscription, on func(mcp.Message)) error {
	a = m.agent(a)
	m.s.lanes.open(a)
	return m.s.run(ctx, &listener{
		agent: a, want: Subscription{}, on: on, ready: readyAfter(1, want.Ready),
		sums:  func(context.Context) lists3 { return lists3{} },
		shows: func(k policy.Key) bool { return m.s.recent(ctx, a.now()).by[naming.Label(k.Server, k.Account)] != nil },
		shown: func(_ policy.Key, uri string) string { return uri },
	})
}
