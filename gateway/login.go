package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface"
)

// beginLogin starts a login that a call needs. It does not wait for anybody.
func (g *Gateway) beginLogin(ctx context.Context, end *endpoint, a surface.Agent, p surface.Problem) (surface.Login, bool) {
	if p.Server == "" {
		return surface.Login{}, false
	}
	l, err := g.views.BeginLogin(ctx, end.view, a, p.Server)
	if err != nil {
		g.opt.Log.Warn("cannot start a login", "server", p.Server, "error", err)
		return surface.Login{}, false
	}
	return l, true
}

// loginMessage is what a person reads before they visit the URL.
func loginMessage(p surface.Problem, l surface.Login) string {
	text := fmt.Sprintf("%s wants you to log in.", p.Server)
	if l.Code != "" {
		text += fmt.Sprintf(" Enter the code %s there.", l.Code)
	}
	if l.Flow == policy.FlowPaste && l.Paste != "" {
		text += " " + l.Paste
	}
	return text + " The call goes on when you are done."
}

// needsLogin tells an agent that can show no URL what a person has to do.
func (g *Gateway) needsLogin(method string, p surface.Problem, l surface.Login) response {
	switch {
	case l.State == "done": // it needed nobody
		return problem(method, fmt.Sprintf("%s. It has just logged in to %s by itself.\n\nMake the same call again.", strings.TrimRight(p.Text, ". "), p.Server))
	case l.Handle == "" && l.URL == "" && l.Markdown == "":
		return problem(method, words(p))
	}
	text := strings.TrimRight(p.Text, ". ") + ".\n\n"
	if l.Markdown != "" {
		text += "Show this to the user:\n\n" + l.Markdown
	} else {
		text += "Ask the user to open this address"
		if l.Code != "" {
			text += " and to enter the code " + l.Code
		}
		text += ":\n" + l.URL
	}
	if l.Handle != "" {
		text += "\n\nLogin handle: " + l.Handle + "."
	}
	return problem(method, text+"\n\nMake the same call again when the user has finished.")
}

// urlElicitation is the way of revision 2025-11-25 to send a person to a URL.
func urlElicitation(p surface.Problem, l surface.Login) response {
	e := mcp.Errorf(mcp.CodeURLElicitation, "%s requires login", p.Server)
	e.Data = append(e.Data, `{"elicitations":[{"mode":"url","elicitationId":`...)
	e.Data = jsonx.AppendText(e.Data, l.Handle)
	e.Data = jsonx.AppendText(append(e.Data, `,"url":`...), l.URL)
	e.Data = jsonx.AppendText(append(e.Data, `,"message":`...), loginMessage(p, l))
	e.Data = append(e.Data, "}]}"...)
	return response{err: e}
}

// How long a retry waits for a person who has only just opened the page, and how
// often it looks.
const (
	loginWait = 2 * time.Minute
	loginPoll = time.Second
)

// afterLogin waits for the login that a call was held up by. True: the person does
// not want to, so the call is over.
func (g *Gateway) afterLogin(ctx context.Context, q *request, st state) (response, bool) {
	action := ""
	if v, ok := jsonx.Path(q.Params, "inputResponses", "login", "action"); ok {
		action, _ = jsonx.Text(v)
	}
	if action == "decline" || action == "cancel" {
		a := problem(q.Method, fmt.Sprintf("The user did not log in to %s, so the call was not made.", st.Server))
		return fit(q.Method, a), true
	}
	deadline := time.Now().Add(loginWait)
	for time.Now().Before(deadline) && g.views.LoginPending(ctx, q.end.view, q.agent, st.Server) {
		select {
		case <-time.After(loginPoll):
		case <-ctx.Done():
			return response{none: true}, true
		}
	}
	return response{}, false
}
