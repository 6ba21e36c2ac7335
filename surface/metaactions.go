package surface

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/suggest"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
	"github.com/usher-mcp/usher/surface/internal/result"
	"github.com/usher-mcp/usher/surface/search"
)

// act runs an action that has an answer of our own.
func (m *meta) act(ctx context.Context, a Agent, in input) (text string, failed bool) {
	switch in.action {
	case "help":
		return metaHelp, false
	case "list_servers":
		return m.listServers(ctx, a), false
	case "search":
		return m.search(ctx, a, in)
	case "list_tools":
		return m.listTools(ctx, a, in)
	case "describe_tool":
		return m.describeTool(ctx, a, in)
	case "status":
		return m.s.statusText(ctx, a, in.server)
	case "complete_login":
		return plain(m.s.login(ctx, a, in.server, in.redirectURL))
	}
	return plain(m.s.login(ctx, a, in.server, ""))
}

// plain takes a result of our own apart again.
func plain(result []byte) (text string, failed bool) {
	content, _ := jsonx.Get(result, "content")
	for e := jsonx.Array(content); e.Next(); {
		text += jsonx.GetText(e.Value, "text")
	}
	v, _ := jsonx.Get(result, "isError")
	return text, string(v) == "true"
}

func (m *meta) listServers(ctx context.Context, a Agent) string {
	snap := m.current(ctx, a, mcp.MethodToolsList)
	if len(snap.sources) == 0 {
		return "No servers are configured. A person can add one with: usher add."
	}
	states := map[string]Status{}
	for _, st := range m.s.gate.Status(ctx, a.who, "") {
		states[naming.Label(st.Name, st.Account)] = statusOf(st)
	}
	var b strings.Builder
	for i := range snap.sources {
		src := &snap.sources[i]
		st := states[src.label]
		state := st.State
		switch {
		case src.Off:
			state = "off"
		case st.NeedsLogin:
			state = "needs login"
		case state == "":
			state = "disconnected"
		}
		fmt.Fprintf(&b, "%s: %s, %s, %s", src.label, state, src.Transport, m.count(snap, src))
		if text := oneLine(src.Description, src.listing.Instructions); text != "" {
			b.WriteString(" - " + text)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (m *meta) count(snap *snapshot, src *source) string {
	n := len(snap.toolNames[src.label])
	switch {
	case !src.known:
		return "tools not known yet"
	case n == 1:
		return "1 tool"
	}
	return fmt.Sprintf("%d tools", n)
}

// oneLine is the first text that is not empty, cut to a line.
func oneLine(texts ...string) string {
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			return search.CutLine(t)
		}
	}
	return ""
}

const maxLimit = 50

func (m *meta) search(ctx context.Context, a Agent, in input) (string, bool) {
	snap := m.current(ctx, a, mcp.MethodToolsList)
	hits := snap.index().Search(in.query, min(in.limit, maxLimit))
	if len(hits) == 0 {
		return fmt.Sprintf("No tool fits %q. Try other words, or action list_servers and then list_tools.", in.query), false
	}
	var b strings.Builder
	for _, h := range hits {
		fmt.Fprintf(&b, "%s / %s", h.Server, h.Tool)
		if h.Title != "" {
			b.WriteString(" - " + h.Title)
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n(server / tool) Next: describe_tool with server and tool, then call.")
	return b.String(), false
}

// source finds the server that was named; its tools are asked for where they were
// never seen. The text says what is wrong, "" when nothing is.
func (m *meta) source(ctx context.Context, a Agent, name string) (*snapshot, *source, string) {
	snap := m.s.snapshot(ctx, a)
	src := snap.by[name]
	if src == nil {
		m.s.refuse(ctx, a, name, mcp.MethodToolsList)
		return nil, nil, noServer(snap, name, &metaHints)
	}
	if src.err != nil {
		p := m.s.Explain(src.err)
		return nil, nil, sentence(p.Text, p.Next)
	}
	if src.known {
		if src.doubtful(m.s.started) {
			m.s.read(src.key, mcp.MethodToolsList, refreshEvery)
		}
		return snap, src, ""
	}
	if err := m.s.ask(ctx, src); err != nil {
		return nil, nil, m.failure(err, name)
	}
	snap = m.s.snapshot(ctx, a)
	if src = snap.by[name]; src == nil {
		return nil, nil, noServer(snap, name, &metaHints)
	}
	return snap, src, ""
}

func noServer(snap *snapshot, name string, h *hints) string {
	names := make([]string, len(snap.sources))
	for i := range snap.sources {
		names[i] = snap.sources[i].label
	}
	return fmt.Sprintf("No server is named %q%s %s", name, orStop(didYouMean(name, names)), h.names)
}

func noTool(snap *snapshot, src *source, tool string) string {
	names := snap.toolNames[src.label]
	if near := suggest.Similar(tool, names); len(near) > 0 {
		return fmt.Sprintf("%s has no tool named %q; did you mean %s? Use action list_tools with server %q for all names.", src.label, tool, strings.Join(near, " or "), src.label)
	}
	for _, h := range snap.index().Search(tool, 3) {
		if h.Server != src.label {
			return fmt.Sprintf("%s has no tool named %q; %s has one that may be meant: %s. Use action search to find others.", src.label, tool, h.Server, h.Tool)
		}
	}
	return fmt.Sprintf("%s has no tool named %q. Use action list_tools with server %q, or search.", src.label, tool, src.label)
}

func (m *meta) listTools(ctx context.Context, a Agent, in input) (string, bool) {
	snap, src, problem := m.source(ctx, a, in.server)
	if problem != "" {
		return problem, true
	}
	text := toolLines(snap, src)
	if text == "" {
		return src.label + " offers no tools.", false
	}
	if src.listing.Stale {
		text += "\n(last known; the server has not been asked again yet)"
	}
	return strings.TrimSuffix(text, "\n"), false
}

// toolLines names the tools of a server, each on a line with its title.
func toolLines(snap *snapshot, src *source) string {
	titles := make(map[string]string, len(src.listing.Tools))
	for _, t := range src.listing.Tools {
		if _, twice := titles[t.Name]; !twice { // only the first could be used
			titles[t.Name] = search.TitleOf(t.Definition)
		}
	}
	var b strings.Builder
	for _, name := range snap.toolNames[src.label] {
		b.WriteString(name)
		if title := titles[name]; title != "" {
			b.WriteString(" - " + title)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// describeTool answers with the definition, to the byte as the server sent it.
func (m *meta) describeTool(ctx context.Context, a Agent, in input) (string, bool) {
	snap, src, problem := m.source(ctx, a, in.server)
	if problem != "" {
		return problem, true
	}
	t, ok := src.tool(in.tool)
	switch {
	case ok && t.Blocked:
		return fmt.Sprintf("%s/%s is blocked: its definition has changed since it was approved. A person has to review it.", src.label, in.tool), true
	case !ok || !snap.hasTool(src, in.tool):
		_ = m.s.gate.Describe(ctx, a.who, src.key, in.tool) // records a refusal
		return noTool(snap, src, in.tool), true
	}
	return string(t.Definition), false
}

// callTool passes a call on and returns the server's own result. What an agent can
// do something about is told in words; a needed login is the gateway's to show.
func (m *meta) callTool(ctx context.Context, a Agent, r mcp.Request, in input) ([]byte, error) {
	if in.arguments == nil {
		in.arguments = []byte("{}")
	}
	if t := jsonx.TypeOf(in.arguments); t != "object" {
		return result.Text(a.Version, fmt.Sprintf("`arguments` must be an object, not %s. Use action describe_tool with server %q and tool %q for what it takes.", t, in.server, in.tool), true), nil
	}
	snap := m.lookup(ctx, a, func(s *snapshot) bool {
		src := s.by[in.server]
		return src != nil && s.hasTool(src, in.tool)
	})
	src := snap.by[in.server]
	if src == nil {
		server, account, _ := strings.Cut(in.server, "@")
		_ = m.s.gate.Enter(ctx, a.who, policy.Key{Server: server, Account: account}, mcp.MethodToolsCall, in.tool) // as below
		return result.Text(a.Version, noServer(snap, in.server, &metaHints), true), nil
	}
	if src.known && !snap.hasTool(src, in.tool) {
		if t, ok := src.tool(in.tool); !ok || !t.Blocked {
			_ = m.s.gate.Enter(ctx, a.who, src.key, mcp.MethodToolsCall, in.tool) // records a refusal; the agent learns only that there is no such tool
			return result.Text(a.Version, noTool(snap, src, in.tool), true), nil
		}
	}
	r.Params = jsonx.Apply(r.Params, jsonx.Edit{Key: "name", Value: jsonx.Quote(in.tool)}, jsonx.Edit{Key: "arguments", Value: in.arguments})
	raw, err := m.s.forward(ctx, a, src.key, in.tool, r)
	if err == nil {
		return raw, nil
	}
	var answer *mcp.Error
	switch m.s.kindOf(err) {
	case KindLogin, KindCancelled:
		return nil, err
	case KindUnknownTool:
		return result.Text(a.Version, noTool(snap, src, in.tool), true), nil
	}
	if errors.As(err, &answer) {
		return nil, err // the server's own answer
	}
	return result.Text(a.Version, m.failure(err, in.server), true), nil
}

// failure says what went wrong with a server and what to do next.
func (m *meta) failure(err error, server string) string {
	p := m.s.Explain(err)
	text := sentence(p.Text, p.Next)
	switch p.Kind {
	case KindLogin:
		return text + fmt.Sprintf(" Use action login with server %q, show the person what it returns, then try again.", server)
	case KindUnavailable:
		return text + fmt.Sprintf(" Use action status with server %q; other servers are not affected.", server)
	case KindDenied, KindChanged:
		return text + " Use another tool, or tell the person."
	case KindOff:
		return text + " Only a person can change that; use another tool or tell them."
	case KindUnknown:
		return text + " Check whether it took effect before you repeat it."
	}
	return text
}
