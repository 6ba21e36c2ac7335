package console

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/status"
)

// serverPage is all about one server.
type serverPage struct {
	serverView
	Facts   []fact
	History []momentView
	Tools   []toolView
	Calls   []callView
	Logs    []logView
	Problem string // why its tools cannot be shown
}

type fact struct{ Name, Value string }

type momentView struct{ Time, To, Slug, Reason string }

type logView struct{ Time, Text string }

// logTail is how many lines of its log are shown.
const logTail = 60

func (c *Console) serverPage(ctx context.Context, v *screen, q url.Values) {
	name := q.Get("name")
	i := slices.IndexFunc(v.Servers, func(s serverView) bool { return s.Account == name && s.Principal == q.Get("principal") })
	if i < 0 {
		v.missing("There is no server of that name.")
		return
	}
	s := v.Servers[i]
	v.Title, v.Nav, v.body, v.Chosen = s.Account, "servers", "server", s.Account
	p := serverPage{serverView: s, Facts: facts(s, v.now)}
	for _, m := range s.History {
		p.History = append(p.History, momentView{m.At.Format(time.TimeOnly), status.Word(m.To), slug(m.To), firstLine(m.Reason, 200)})
	}
	tools, err := c.world.Tools(ctx)
	if err != nil {
		p.Problem = err.Error()
	}
	for _, t := range tools {
		if t.Account == s.Account {
			p.Tools = append(p.Tools, viewTool(t))
		}
	}
	p.Calls = viewCalls(c.world.Calls(), 12, func(x Call) bool { return x.Account == s.Account })
	for _, l := range c.world.Logs(s.Account, logTail) {
		text, _ := cutText(plain(l.Text), 500)
		p.Logs = append(p.Logs, logView{l.At.Format(time.TimeOnly), text})
	}
	v.Page = p
}

func facts(s serverView, now time.Time) []fact {
	list := []fact{{"transport", s.Transport}}
	add := func(name, value string) {
		if value != "" {
			list = append(list, fact{name, value})
		}
	}
	add("where", s.Where)
	add("protocol", s.ProtocolVersion)
	if s.ProtocolVersion != "" {
		tools := fmt.Sprint(s.Tools)
		if s.Stale {
			tools += ", as last known"
		}
		add("tools", tools)
	}
	add("login", s.Login)
	add("circuit", circuitWords(s.Server))
	add("restarts", restartWords(s.Server))
	add("in flight", fmt.Sprint(s.InFlight))
	add("last call", ago(now, s.LastCall))
	return list
}

func circuitWords(s Server) string {
	words := strings.ReplaceAll(s.Circuit, "_", " ")
	if s.ConsecutiveFailures > 0 {
		words += ", " + countOf(s.ConsecutiveFailures, "failure in a row", "failures in a row")
	}
	return words
}

func restartWords(s Server) string {
	if s.MaxRestarts == 0 {
		return fmt.Sprint(s.RestartCount)
	}
	return fmt.Sprintf("%d of %d within %s", s.RestartCount, s.MaxRestarts, status.Approx(s.RestartWindow))
}
