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

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/control"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/advice"
	"github.com/usher-mcp/usher/internal/person"
	"github.com/usher-mcp/usher/status"
)

// ServeControl lets the usher command of the same user see and steer this process,
// until the result is closed:
//
//	GET  /status                             a [status.Report]
//	POST /reload?server=NAME                 as [Servers.Reload], after ReloadConfig
//	POST /reread                             as [App.ReloadConfig]; the answer is its outcome
//	POST /stop?server=NAME                   as [Servers.Stop]
//	GET  /logs?server=NAME&follow=1&lines=N  [status.LogLine] values, one a line
//	POST /login?mode=MODE&server=NAME        begins logins and tells of them, as usher login --json;
//	                                         mode is all, missing (default) or expired
//	POST /login/answers                      the lines of [bulk.Input]; the answer has a reply to each
//	POST /console                            a [status.ConsoleLink]; needs a person's proof
//
// Close it before the App.
func (f Frontend) ServeControl() (io.Closer, error) {
	s, err := control.Serve(f.h.dirs.Run, (&controlServer{f.h}).handler())
	if err != nil {
		return nil, err
	}
	return s, nil
}

// controlServer answers the usher command of the same user.
type controlServer struct{ h *App }

func (c *controlServer) handler() http.Handler {
	mux := http.NewServeMux()
	for _, v := range c.verbs() {
		serve := v.serve
		if v.effect != verbNeutral {
			serve = c.onlyForPerson(serve)
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

func (c *controlServer) verbs() []controlVerb {
	reload := func(r *http.Request, name string) error { return c.h.Servers().Reload(r.Context(), name) }
	stop := func(_ *http.Request, name string) error { return c.h.Servers().Stop(name) }
	return []controlVerb{
		{"GET /status", verbNeutral, c.serveStatus},
		{"POST /reload", verbNeutral, c.steerAfterReload(reload)},
		{"POST /reread", verbNeutral, c.serveReloadConfig},
		{"POST /stop", verbNeutral, c.steer(stop)},
		{"GET /logs", verbNeutral, c.serveLogs},
		{"POST /login", verbNeutral, c.serveLogins}, // a person agrees to it at the provider
		{"POST /login/answers", verbNeutral, func(w http.ResponseWriter, r *http.Request) { c.h.logins.Driver().ServeInput(w, r) }},
		{"POST /console", verbLoosens, c.serveLink}, // pins can be accepted there
	}
}

// serveLogins begins logins and tells of all that were begun here, until they have ended.
func (c *controlServer) serveLogins(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	mode := bulk.Mode(cmp.Or(q.Get("mode"), string(bulk.ModeMissing)))
	if err := c.h.logins.Start(q["server"], mode); err != nil {
		refuse(w, err)
		return
	}
	c.h.logins.Driver().ServeEvents(w, r)
}

// onlyForPerson refuses a request behind which no person stands.
func (c *controlServer) onlyForPerson(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		peer := person.Peer{
			PID: control.PeerPID(r), Terminal: r.Header.Get(control.TerminalHeader) == "1",
			Token: r.Header.Get(control.TokenHeader), Dir: c.h.dirs.Config,
		}
		if err := peer.Check(); err != nil {
			control.Forbid(w, err)
			return
		}
		serve(w, r)
	}
}

func (c *controlServer) serveStatus(w http.ResponseWriter, r *http.Request) {
	out := c.h.Servers().Report()
	out.Store = c.h.StoreStatus(r.Context())
	answerJSON(w, out)
}

func (c *controlServer) serveLink(w http.ResponseWriter, _ *http.Request) {
	web := c.h.console.Load()
	if web == nil {
		control.Refuse(w, ErrNoConsole, true)
		return
	}
	answerJSON(w, status.ConsoleLink{PID: os.Getpid(), Link: web.Link()})
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client has left
}

// steer makes a handler of an operation on one server. An account stands for its
// server: what is ended and forgotten belongs to all accounts.
func (c *controlServer) steer(do func(r *http.Request, name string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		k, err := c.h.key(r.FormValue("server"))
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

// steerAfterReload is steer for an operation that may be about a server of which
// this process has not heard yet.
func (c *controlServer) steerAfterReload(do func(r *http.Request, name string) error) http.HandlerFunc {
	steer := c.steer(do)
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = c.h.ReloadConfig(c.h.life) // a file with a mistake is no reason not to do it
		steer(w, r)
	}
}

func (c *controlServer) serveReloadConfig(w http.ResponseWriter, _ *http.Request) {
	got, err := c.h.ReloadConfig(c.h.life)
	if err != nil {
		control.Refuse(w, err, false)
		return
	}
	answerJSON(w, got)
}

// serveLogs sends the lines this process holds, not those an earlier one kept.
func (c *controlServer) serveLogs(w http.ResponseWriter, r *http.Request) {
	k, err := hostedKey(c.h, r.FormValue("server"))
	if err != nil {
		refuse(w, err)
		return
	}
	tail, _ := strconv.ParseUint(r.FormValue("lines"), 10, 64) // anything else means all
	var last uint64
	held, err := c.h.hosted.Logs(r.Context(), k, false)
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
		if lines, err = c.h.hosted.Logs(r.Context(), k, true); err != nil {
			control.Refuse(w, err, false)
			return
		}
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush() // a client that follows learns that it is connected
	enc := json.NewEncoder(w)
	for l := range lines {
		if tail > 0 && l.Seq+tail <= last {
			continue
		}
		if enc.Encode(status.LogLine{Time: l.Time, Text: l.Text}) != nil {
			return
		}
		if follow && flush() != nil {
			return
		}
	}
}

// hostedKey is App.key for requests that only look: a label that is not in use here is
// unknown, and does not become known by asking.
func hostedKey(h *App, account string) (host.Key, error) {
	k, err := h.key(account)
	if err != nil {
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
	control.Refuse(w, errors.New(advice.Message(err)), errors.Is(err, host.ErrUnknownServer))
}
