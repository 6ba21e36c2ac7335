package console

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/policy/budget"
	"github.com/usher-mcp/usher/status"
)

// serverView is a row of the list of servers.
type serverView struct {
	Server
	Account string // server, or server@label
	State   string // the state as people read it
	Login   string // how its login stands; "" when it has none
	Next    *status.Advice

	ID    string
	Slug  string // the state as a name of a class
	Spark spark
	Last  string
	Note  string // one line under the name
}

// Address is that of its page.
func (v serverView) Address() string { return address(pathServer, "name", v.Account) }

func viewServer(s Server, now time.Time) serverView {
	s.LastError, s.Where = plain(s.LastError), plain(s.Where)
	v := serverView{
		Server: s, Account: s.AccountName(), State: status.Word(s.State), Login: serverLogin(s.Auth), Next: next(&s),
		ID: id("s", s.Principal+"/"+s.AccountName()), Slug: slug(s.State), Spark: draw(s.Latency), Last: ago(now, s.LastCall),
	}
	switch {
	case s.Circuit == "open":
		v.Note = "circuit open"
	case s.Circuit == "half_open":
		v.Note = "probing"
	case s.RestartCount > 0:
		v.Note = countOf(s.RestartCount, "restart", "restarts")
	case s.LastCall.IsZero():
		v.Note = "not called yet"
	default:
		v.Note = v.Last
	}
	return v
}

// next is the first thing to do about a server; nil when nothing needs to be done.
func next(s *Server) *status.Advice {
	all := status.Advise(&s.Server, s.RestartWindow)
	if len(all) == 0 {
		return nil
	}
	first := all[0]
	for i, command := range first.Commands {
		first.Commands[i] = plain(command)
	}
	return &first
}

// serverLogin says how the login of a server stands, in a few words.
func serverLogin(a host.AuthStatus) string {
	switch {
	case a.NeedsLogin():
		return plain(cmp.Or(strings.TrimPrefix(a.Reason, "login required: "), "needed"))
	case a.State == host.AuthOK:
		return "ok"
	case a.State == host.AuthPending:
		return "waits for your consent"
	}
	return ""
}

// slug is a state as a name of a class.
func slug(state host.State) string { return strings.ReplaceAll(status.Word(state), " ", "-") }

// spark is the last minute in bars, one a second, higher for slower.
type spark struct {
	Good, Bad string // paths
	Words     string
}

// The box that bars are drawn in.
const (
	sparkStep   = 2
	sparkHeight = 20
)

func draw(seconds []Second) spark {
	var good, bad strings.Builder
	calls, failed, worst := 0, 0, time.Duration(0)
	for i, s := range seconds {
		if s.Calls == 0 {
			continue
		}
		calls, failed, worst = calls+s.Calls, failed+s.Failed, max(worst, s.Worst)
		to := &good
		if s.Failed > 0 {
			to = &bad
		}
		fmt.Fprintf(to, "M%d %dv-%.1f", i*sparkStep+1, sparkHeight, barHeight(s.Worst))
	}
	v := spark{Good: good.String(), Bad: bad.String(), Words: "no calls in the last minute"}
	if calls > 0 {
		v.Words = fmt.Sprintf("last minute: %s, slowest %s", countOf(calls, "call", "calls"), took(worst))
		if failed > 0 {
			v.Words += fmt.Sprintf(", %d failed", failed)
		}
	}
	return v
}

// barHeight grows with the logarithm: 1 ms, 10 ms, … 10 s.
func barHeight(d time.Duration) float64 {
	ms := max(float64(d)/float64(time.Millisecond), 1)
	return min(3+math.Log10(ms)/4*(sparkHeight-3), sparkHeight)
}

// overviewPage is the first page: what needs a person, and what happened.
type overviewPage struct {
	Attention []serverView
	Budgets   []budgetView
	Calls     []callView
	Well      string
}

func (c *Console) overview(_ context.Context, v *screen) {
	v.Title, v.Nav, v.body = "Overview", "servers", "overview"
	p := overviewPage{Budgets: viewBudgets(c.world.Budgets(), v.now), Calls: viewCalls(c.world.Calls(), 12, nil)}
	connected := 0
	for _, s := range v.Servers {
		if s.Next != nil {
			p.Attention = append(p.Attention, s)
		}
		if s.Server.State == host.Connected {
			connected++
		}
	}
	switch {
	case len(v.Servers) == 0:
		p.Well = "No servers yet. Bring in those you have with usher import, or add one: usher add NAME URL"
	case len(p.Attention) == 0 && v.Waiting == 0:
		p.Well = fmt.Sprintf("Nothing needs you. %d of %s connected, the others connect when they are called.", connected, countOf(len(v.Servers), "server", "servers"))
		if connected == len(v.Servers) {
			p.Well = fmt.Sprintf("Nothing needs you. All %d servers are connected.", connected)
		}
	}
	v.Page = p
}

// budgetView is one limit of a budget.
type budgetView struct {
	Server       string
	Used, Limit  int64
	Whose, Words string
}

func viewBudgets(list []policy.BudgetStatus, now time.Time) []budgetView {
	var out []budgetView
	add := func(b policy.BudgetStatus, used, limit int64, per string) {
		if limit > 0 {
			words := fmt.Sprintf("%d of %d calls per %s", used, limit, per)
			out = append(out, budgetView{b.Server, used, limit, cmp.Or(b.Server, "all servers together"), words})
		}
	}
	for _, b := range list {
		add(b, b.Run, b.RunLimit, "run")
		window := budget.Short(b.Window)
		if !b.Refill.IsZero() {
			window += ", resets in " + status.Approx(b.Refill.Sub(now))
		}
		add(b, b.WindowUsed, b.WindowLimit, window)
	}
	return out
}

type callView struct {
	Call
	ID      string
	Time    string
	Took    string
	Size    string
	Shown   string // server and tool
	Outcome string // in words
	Problem string
}

// Address is that of the tool's page.
func (v callView) Address() string { return address(pathTool, "server", v.Account, "name", v.Tool) }

// viewCalls shows at most n calls, those that keep lets through.
func viewCalls(calls []Call, n int, keep func(Call) bool) []callView {
	var out []callView
	for _, c := range calls {
		if keep != nil && !keep(c) {
			continue
		}
		if len(out) == n {
			break
		}
		problem, _ := cutText(plain(c.Problem), 400)
		c.Arguments = plain(c.Arguments)
		out = append(out, callView{
			Call: c, ID: fmt.Sprintf("c%d", c.Number), Time: c.Began.Format(time.TimeOnly), Took: took(c.Took), Size: size(c.Bytes),
			Shown: plain(c.Account + "/" + c.Tool), Outcome: strings.ReplaceAll(c.Outcome, "_", " "), Problem: problem,
		})
	}
	return out
}

// callsPage is everything that was called lately.
type callsPage struct {
	Calls  []callView
	Failed bool // only those
	Total  int
}

func (c *Console) callsPage(v *screen, q url.Values) {
	v.Title, v.Nav, v.body = "Calls", "calls", "calls"
	all := c.world.Calls()
	p := callsPage{Failed: q.Get("show") == "failed", Total: len(all)}
	p.Calls = viewCalls(all, 200, func(x Call) bool { return !p.Failed || x.Failed })
	v.Page = p
}
