package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/control"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/person"
)

// Report is what a running usher says of itself on its control socket.
type Report struct {
	PID     int            `json:"pid"`
	Started time.Time      `json:"started"`
	Servers []ServerReport `json:"servers"`
	Budgets []BudgetReport `json:"budgets"`
	Store   StoreReport    `json:"store"`
}

// ServerReport is the state of one connection, and when it was last used for a
// call.
type ServerReport struct {
	host.ServerStatus
	LastCall time.Time `json:"last_call,omitzero"`
}

// BudgetReport is how far a budget is used up; limits of 0 mean none.
type BudgetReport struct {
	Server      string        `json:"server"` // empty: all servers together
	Run         int64         `json:"run"`    // calls in this run
	RunLimit    int64         `json:"run_limit,omitempty"`
	Window      time.Duration `json:"window_ns,omitempty"`
	WindowUsed  int64         `json:"window_used"`
	WindowLimit int64         `json:"window_limit,omitempty"`
	Refill      time.Time     `json:"refill,omitzero"`
}

// ServedLog is a line of a server's standard error as the control socket sends it.
// It is foreign text, see [host.LogLine].
type ServedLog struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// ServeControl lets the usher command of the same user see and steer this host,
// until the result is closed:
//
//	GET  /status                             a [Report]
//	POST /reload?server=NAME                 as Reload, after Reread
//	POST /reread                             as [App.Reread]; the answer is its outcome
//	POST /stop?server=NAME                   as Stop
//	GET  /logs?server=NAME&follow=1&lines=N  [ServedLog] values, one a line
//	POST /login?mode=MODE&server=NAME        begins logins and tells of them, as usher login --json;
//	                                         mode is all, missing (default) or expired
//	POST /login/answers                      the lines of [bulk.Input]; the answer has a reply to each
//	POST /console                            a [ConsoleLink]; needs a person's proof
//
// Close it before the Host.
func (h *App) ServeControl() (io.Closer, error) {
	s, err := control.Serve(h.dirs.Run, h.controlHandler())
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (h *App) controlHandler() http.Handler {
	mux := http.NewServeMux()
	for _, v := range h.controlVerbs() {
		serve := v.serve
		if v.effect != verbNeutral {
			serve = h.onlyForPerson(serve)
		}
		mux.HandleFunc(v.pattern, serve)
	}
	return mux
}

// verbEffect says what a verb of the control socket does to what guards agents. Any
// process of the same user can send one, also the shell of an agent.
type verbEffect int

const (
	verbNeutral verbEffect = iota + 1
	verbLoosens            // it needs a person's proof, see [person.Peer]
)

type controlVerb struct {
	pattern string
	effect  verbEffect
	serve   http.HandlerFunc
}

func (h *App) controlVerbs() []controlVerb {
	reload := func(r *http.Request, name string) error { return h.Reload(r.Context(), name) }
	stop := func(_ *http.Request, name string) error { return h.Stop(name) }
	return []controlVerb{
		{"GET /status", verbNeutral, h.serveStatus},
		{"POST /reload", verbNeutral, h.steerAfterReread(reload)},
		{"POST /reread", verbNeutral, h.serveReread},
		{"POST /stop", verbNeutral, h.steer(stop)},
		{"GET /logs", verbNeutral, h.serveLogs},
		{"POST /login", verbNeutral, h.serveLogins}, // a person agrees to it at the provider
		{"POST /login/answers", verbNeutral, func(w http.ResponseWriter, r *http.Request) { h.loginDriver().ServeInput(w, r) }},
		{"POST /console", verbLoosens, h.serveLink}, // pins can be accepted there
	}
}

// serveLogins begins logins and tells of all that were begun here, until they have ended.
func (h *App) serveLogins(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	mode := bulk.Mode(cmp.Or(q.Get("mode"), string(bulk.ModeMissing)))
	if err := h.beginLogins(q["server"], mode); err != nil {
		refuse(w, err)
		return
	}
	h.loginDriver().ServeEvents(w, r)
}

// onlyForPerson refuses a request behind which no person stands.
func (h *App) onlyForPerson(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		peer := person.Peer{
			PID: control.PeerPID(r), Terminal: r.Header.Get(control.TerminalHeader) == "1",
			Token: r.Header.Get(control.TokenHeader), Dir: h.dirs.Config,
		}
		if err := peer.Check(); err != nil {
			control.Forbid(w, err)
			return
		}
		serve(w, r)
	}
}

func (h *App) serveStatus(w http.ResponseWriter, r *http.Request) {
	out := h.Report()
	out.Store = h.StoreReport(r.Context())
	answerJSON(w, out)
}

// ConsoleLink opens the console of a running usher, once.
type ConsoleLink struct {
	PID  int    `json:"pid"`
	Link string `json:"link"`
}

func (h *App) serveLink(w http.ResponseWriter, _ *http.Request) {
	c := h.shown.Load()
	if c == nil {
		control.Refuse(w, ErrNoConsole, true)
		return
	}
	answerJSON(w, ConsoleLink{os.Getpid(), c.Link()})
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // whoever asked has left
}

// Report says how this host is, as its control socket does.
func (h *App) Report() Report {
	out := Report{PID: os.Getpid(), Started: h.started, Servers: []ServerReport{}, Budgets: h.BudgetReports()}
	for _, s := range h.Status().Servers {
		k := host.Key{Principal: s.Principal, Server: s.Name, Account: s.Account}
		out.Servers = append(out.Servers, ServerReport{s, h.called.at(k)})
	}
	return out
}

// BudgetReports says how far the budgets that have a limit are used up.
func (h *App) BudgetReports() []BudgetReport {
	out := []BudgetReport{}
	for _, b := range h.gate.Budgets() {
		if b.RunLimit > 0 || b.WindowLimit > 0 {
			out = append(out, BudgetReport{b.Server, b.Run, b.RunLimit, b.Window, b.WindowUsed, b.WindowLimit, b.Refill})
		}
	}
	return out
}

// steer makes a handler of an operation on one server. An account stands for its
// server: what is ended and forgotten belongs to all accounts.
func (h *App) steer(do func(r *http.Request, name string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		k, err := h.key(r.FormValue("server"))
		if err == nil {
			err = h.broken(k.Server)
		}
		if err == nil {
			err = do(r, k.Server)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		answerJSON(w, map[string]int{"pid": os.Getpid()})
	}
}

// steerAfterReread is steer for an operation that may be about a server of which
// this host has not heard yet.
func (h *App) steerAfterReread(do func(r *http.Request, name string) error) http.HandlerFunc {
	steer := h.steer(do)
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = h.Reread(h.life) // a file with a mistake is no reason not to do it
		steer(w, r)
	}
}

func (h *App) serveReread(w http.ResponseWriter, _ *http.Request) {
	got, err := h.Reread(h.life)
	if err != nil {
		control.Refuse(w, err, false)
		return
	}
	answerJSON(w, got)
}

// serveLogs sends the lines this process holds, not those an earlier one kept.
func (h *App) serveLogs(w http.ResponseWriter, r *http.Request) {
	k, err := h.hostedKey(r.FormValue("server"))
	if err != nil {
		refuse(w, err)
		return
	}
	tail, _ := strconv.ParseUint(r.FormValue("lines"), 10, 64) // anything else means all
	var last uint64
	held, err := h.hosted.Logs(r.Context(), k, false)
	if err != nil {
		refuse(w, err)
		return
	}
	for l := range held {
		last = l.Seq
	}
	lines := held
	follow := r.FormValue("follow") != ""
	if follow {
		if lines, err = h.hosted.Logs(r.Context(), k, true); err != nil {
			control.Refuse(w, err, false)
			return
		}
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush() // whoever follows learns that it is connected
	enc := json.NewEncoder(w)
	for l := range lines {
		if tail > 0 && l.Seq+tail <= last {
			continue
		}
		if enc.Encode(ServedLog{l.Time, l.Text}) != nil {
			return
		}
		if follow && flush() != nil {
			return
		}
	}
}

// hostedKey is key for something that is only looked at: a label that nobody uses
// here is unknown, and does not become known by asking.
func (h *App) hostedKey(account string) (host.Key, error) {
	k, err := h.key(account)
	if err != nil {
		return k, err
	}
	if err := h.broken(k.Server); err != nil {
		return k, err
	}
	if k.Account == "" {
		return k, nil
	}
	if !slices.ContainsFunc(h.hosted.Status().Servers, func(s host.ServerStatus) bool { return s.Name == k.Server && s.Account == k.Account }) {
		return k, fmt.Errorf("%q is not in use here (%w)", account, host.ErrUnknownServer)
	}
	return k, nil
}

// refuse answers with what a person is told.
func refuse(w http.ResponseWriter, err error) {
	control.Refuse(w, errors.New(Message(err)), errors.Is(err, host.ErrUnknownServer))
}
