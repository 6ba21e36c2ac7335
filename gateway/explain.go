package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/usher-mcp/usher/gateway/internal/suspend"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// failed is the answer to a request of the stateless protocol that a view could not fulfil.
func (g *Gateway) failed(ctx context.Context, q *request, err error) response {
	var said *mcp.Error
	if errors.As(err, &said) {
		return g.said(q, said)
	}
	if ctx.Err() != nil {
		return response{none: true}
	}
	p := g.views.Explain(err)
	if p.Kind != surface.KindLogin || !asks(q.Method) || !suspend.CanOpenURL(q.agent.Capabilities) {
		return fit(q.Method, g.explain(ctx, q.end, q.agent, q.Method, err))
	}
	l, ok := g.beginLogin(ctx, q.end, q.agent, p)
	if !ok || l.URL == "" {
		return fit(q.Method, g.needsLogin(q.Method, p, l))
	}
	st := state{Kind: stateLogin, Server: p.Server, Request: q.subject()}
	return g.inputRequired(q, st, []visit{{key: "login", url: l.URL, message: loginMessage(p, l)}})
}

// said is an error of the server in the words of the stateless protocol.
func (g *Gateway) said(q *request, e *mcp.Error) response {
	switch {
	case e.Code == mcp.CodeResourceNotFound && q.Method == mcp.MethodResourcesRead:
		out := mcp.Errorf(mcp.CodeInvalidParams, "%s", e.Message)
		out.Data = e.Data
		return response{err: out}
	case e.Code == mcp.CodeURLElicitation && asks(q.Method) && suspend.CanOpenURL(q.agent.Capabilities):
		if visits := readVisits(e.Data); len(visits) > 0 {
			return g.inputRequired(q, state{Kind: stateAgain, Request: q.subject()}, visits)
		}
	}
	return response{err: e}
}

// visit is a URL that a person has to go to.
type visit struct{ key, url, message string }

// readVisits reads the error of revision 2025-11-25 that sends a person to a URL.
func readVisits(data []byte) []visit {
	list, _ := jsonx.Get(data, "elicitations")
	var out []visit
	for e := jsonx.Array(list); e.Next(); {
		if url := jsonx.GetText(e.Value, "url"); url != "" {
			out = append(out, visit{key: fmt.Sprintf("q%d", len(out)+1), url: url, message: jsonx.GetText(e.Value, "message")})
		}
	}
	return out
}

// inputRequired sends a person to URLs in the way of the stateless protocol.
func (g *Gateway) inputRequired(q *request, st state, visits []visit) response {
	out := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, v := range visits {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsonx.AppendText(out, v.key)
		out = append(out, `:{"method":"elicitation/create","params":{"mode":"url","url":`...)
		out = jsonx.AppendText(out, v.url)
		out = jsonx.AppendText(append(out, `,"message":`...), v.message)
		out = append(out, "}}"...)
	}
	out = append(out, `},"requestState":`...)
	out = jsonx.AppendText(out, g.seal.seal(st, owner(q.agent), g.opt.SuspendTime))
	return response{result: append(out, '}')}
}

// explain puts an error into words for a client of any protocol: a tool call ends with a
// result that a model can act on, everything else with an error.
func (g *Gateway) explain(ctx context.Context, end *endpoint, a surface.Agent, method string, err error) response {
	var said *mcp.Error
	if errors.As(err, &said) {
		return response{err: said}
	}
	if ctx.Err() != nil {
		return response{none: true}
	}
	p := g.views.Explain(err)
	switch p.Kind {
	case surface.KindUnknownTool, surface.KindUnknownServer:
		return failure(mcp.CodeInvalidParams, "%s", words(p))
	case surface.KindLogin:
		l, _ := g.beginLogin(ctx, end, a, p)
		if l.URL != "" && a.Version >= mcp.V20251125 && !mcp.Stateless(a.Version) && suspend.CanOpenURL(a.Capabilities) {
			return urlElicitation(p, l)
		}
		return g.needsLogin(method, p, l)
	}
	return problem(method, words(p))
}

// words is a problem in one paragraph: what is wrong, then what to do.
func words(p surface.Problem) string {
	text := strings.TrimRight(p.Text, ". ")
	if p.Next != "" && !strings.Contains(p.Text, p.Next) {
		text += ". Next: " + strings.TrimRight(p.Next, ". ")
	}
	if p.RetryAfter > 0 {
		text += fmt.Sprintf(". Try again in %s", p.RetryAfter.Round(time.Second))
	}
	return text + "."
}

// problem is a text in the form that the method allows.
func problem(method, text string) response {
	if method != mcp.MethodToolsCall {
		return failure(mcp.CodeInternal, "%s", text)
	}
	out := jsonx.AppendText([]byte(`{"content":[{"type":"text","text":`), text)
	return response{result: append(out, `}],"isError":true}`...)}
}

// fit adds to a result of ours what the stateless protocol wants.
func fit(method string, a response) response {
	if a.result == nil {
		return a
	}
	return complete(method, a.result)
}
