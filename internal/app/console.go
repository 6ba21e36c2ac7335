package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/console"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/advice"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/status"
	"github.com/usher-mcp/usher/surface"
)

// Console shows and steers this process in a browser. From now on the newest calls are
// kept. Close it before the App.
func (f Frontend) Console(opt *console.Options) *console.Console {
	f.h.calls.Watch()
	w := &consoleWorld{h: f.h}
	f.h.background.Go(w.watch)
	c := console.New(w, opt)
	f.h.console.Store(c)
	return c
}

// ErrNoConsole: this host serves no console.
var ErrNoConsole = errors.New("this usher serves no console")

// consoleWorld is what a console shows of a host, for the host's principal.
type consoleWorld struct {
	h *App

	mu      sync.Mutex // guards history
	history map[host.Key][]console.Moment
}

// maxMoments is how many changes of state are remembered of each account.
const maxMoments = 12

// watch remembers what happens to servers, until the host is closed.
func (w *consoleWorld) watch() {
	sub := w.h.bus.Subscribe(0)
	defer sub.Close()
	for e := range sub.All(w.h.life) {
		c, ok := e.(event.ServerChanged)
		if !ok {
			continue
		}
		k := host.Key{Principal: c.Principal, Server: c.Server, Account: c.Account}.Shared()
		m := console.Moment{At: c.At, From: host.State(c.From), To: host.State(c.To), Reason: c.Reason}
		w.mu.Lock()
		if w.history == nil {
			w.history = map[host.Key][]console.Moment{}
		}
		list := append([]console.Moment{m}, w.history[k]...)
		w.history[k] = list[:min(len(list), maxMoments)]
		w.mu.Unlock()
	}
}

// Subscribe tells when to look again.
func (w *consoleWorld) Subscribe() *event.Subscription[event.Event] { return w.h.bus.Subscribe(0) }

// Servers are all servers, once for each account in use.
func (w *consoleWorld) Servers(ctx context.Context) []console.Server {
	now := time.Now()
	rows := map[host.Key]*console.Server{}
	for _, s := range w.h.Status().Servers {
		k := host.Key{Principal: s.Principal, Server: s.Name, Account: s.Account}.Shared()
		row := rows[k]
		if row == nil {
			row = w.server(ctx, s, k, now)
			rows[k] = row
			continue
		}
		// Another lane of the same account.
		row.InFlight += s.InFlight
		row.RestartCount += s.RestartCount
		row.LastError = cmp.Or(row.LastError, s.LastError)
		if row.State == host.Disconnected {
			row.State = s.State
		}
	}
	for _, srv := range w.h.Config().Servers {
		k := host.Key{Principal: w.h.principal, Server: srv.Name}
		if srv.Problem != nil && rows[k] == nil {
			rows[k] = &console.Server{Server: status.Server{ServerStatus: host.ServerStatus{
				Name: srv.Name, State: status.Broken, Transport: string(srv.Transport), LastError: srv.Problem.Error(),
			}}}
		}
	}
	var out []console.Server
	for _, row := range rows {
		out = append(out, *row)
	}
	slices.SortFunc(out, func(a, b console.Server) int {
		return cmp.Or(cmp.Compare(a.AccountName(), b.AccountName()), cmp.Compare(a.Principal, b.Principal))
	})
	return out
}

func (w *consoleWorld) server(ctx context.Context, s host.ServerStatus, k host.Key, now time.Time) *console.Server {
	srv, _ := w.h.hosted.Server(s.Name)
	s.Lane = "" // the row stands for all lanes
	out := &console.Server{
		Server: status.Server{ServerStatus: s, LastCall: w.h.calls.LastCall(k)}, Where: whereServer(srv),
		MaxRestarts: srv.Supervision.RestartLimit(), RestartWindow: srv.Supervision.RestartWindow,
	}
	out.Settle(srv, func() bool { return w.h.approvals.check(ctx, srv) != nil })
	for _, sec := range w.h.calls.LastMinute(k, now) {
		out.Latency = append(out.Latency, console.Second{Calls: sec.Calls, Failed: sec.Failed, Worst: sec.Worst})
	}
	w.mu.Lock()
	out.History = slices.Clone(w.history[k])
	w.mu.Unlock()
	return out
}

// whereServer is the command or the address of a server without its secrets.
func whereServer(srv config.Server) string {
	srv = srv.Masked()
	if srv.Transport == config.TransportStdio {
		return strings.Join(append([]string{srv.Command}, srv.Args...), " ")
	}
	return srv.URL
}

// Logs are the last lines of standard error.
func (w *consoleWorld) Logs(account string, lines int) []console.LogLine {
	k, err := hostedKey(w.h, account)
	if err != nil {
		return nil
	}
	held, err := w.h.hosted.Logs(w.h.life, k, false)
	if err != nil {
		return nil
	}
	var out []console.LogLine
	for l := range held {
		out = append(out, console.LogLine{At: l.Time, Text: l.Text})
	}
	return out[max(len(out)-lines, 0):]
}

// Tools are the last known tools.
func (w *consoleWorld) Tools(ctx context.Context) ([]console.Tool, error) {
	known, err := w.h.Catalog().Cached(ctx)
	var out []console.Tool
	for _, s := range known {
		for _, t := range s.Tools {
			out = append(out, console.Tool{Account: s.Account, Name: t.Name, Definition: t.Definition, Blocked: t.Blocked})
		}
	}
	return out, err
}

// List asks a server for its tools.
func (w *consoleWorld) List(ctx context.Context, account string) error {
	list, err := w.h.Tools(ctx, account)
	if err == nil {
		err = list.Problem
	}
	return err
}

// Call runs a tool under policy.
func (w *consoleWorld) Call(ctx context.Context, account, tool string, arguments []byte) ([]byte, error) {
	return w.h.Call(ctx, account, tool, arguments, nil)
}

// Explain says what an error means. What policy says has its own hint.
func (w *consoleWorld) Explain(err error) surface.Problem {
	p := policy.Explain(err)
	p.Text = advice.Message(err)
	var failed *host.Error
	if p.Next = advice.Next(err); errors.As(err, &failed) {
		p.Next = advice.NextStep(failed)
	}
	if errors.Is(err, context.Canceled) {
		p.Text = "cancelled"
	}
	return p
}

// Calls are those that ended last.
func (w *consoleWorld) Calls() []console.Call {
	recent := w.h.calls.Recent()
	out := make([]console.Call, len(recent))
	for i, c := range recent {
		out[i] = console.Call{
			Number: c.Number, Account: c.Key.Name(), Tool: c.Tool, Outcome: c.Outcome,
			Failed: c.Problem != "" || c.Outcome == policy.OutcomeToolError, Began: c.Began, Took: c.Took, Bytes: c.Bytes,
			Problem: c.Problem, Arguments: string(c.Shape),
		}
		if c.Key.Principal != w.h.principal {
			out[i].Principal = c.Key.Principal
		}
	}
	return out
}

// Budgets are those with a limit.
func (w *consoleWorld) Budgets() []policy.BudgetStatus { return limitedBudgets(w.h.gate) }

// Reload restarts a server.
func (w *consoleWorld) Reload(ctx context.Context, server string) error {
	return w.h.Servers().Reload(ctx, server)
}

// Stop ends the connections of a server.
func (w *consoleWorld) Stop(server string) error { return w.h.Servers().Stop(server) }

// Accounts are the logins of this principal.
func (w *consoleWorld) Accounts(ctx context.Context) ([]auth.Status, error) {
	return w.h.engine.Accounts(ctx, w.h.principal)
}

// Logout ends a login; clients that are connected with it have to log in again.
func (w *consoleWorld) Logout(ctx context.Context, account string) error {
	a, err := w.h.logins.Account(account)
	if err == nil {
		_, err = w.h.logins.Logout(ctx, a)
	}
	return err
}

// Logins says how the logins stand that were begun.
func (w *consoleWorld) Logins() console.LoginDriver {
	if d := w.h.logins.Running(); d != nil {
		return d
	}
	return nil
}

// Login begins the login of one account, or of all servers that have none, and
// returns at once.
func (w *consoleWorld) Login(account string) error {
	if account == "" {
		return w.h.logins.Start(nil, bulk.ModeMissing)
	}
	return w.h.logins.Start([]string{account}, bulk.ModeAll)
}
