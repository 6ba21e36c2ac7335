// Package status has the one form in which a process reports its servers: the control
// socket sends a Report, `usher status` merges those of all processes, and the console
// shows the same rows.
//
//	report := h.Servers().Report()
//	for _, s := range report.Servers {
//		fmt.Println(s.AccountName(), status.Word(s.State), status.Advise(&s, restartWindow))
//	}
//
// The JSON forms are frozen: scripts read them.
package status

import (
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
)

// Report is the status of one process, as its control socket sends it.
type Report struct {
	PID     int                   `json:"pid"`
	Started time.Time             `json:"started"`
	Servers []Server              `json:"servers"`
	Budgets []policy.BudgetStatus `json:"budgets"`
	Store   Store                 `json:"store"`
}

// Server is the state of one account of a server, and when it was last called.
type Server struct {
	host.ServerStatus
	LastCall time.Time `json:"last_call,omitzero"`
}

// AccountName is "server" or "server@label".
func (s Server) AccountName() string { return config.AccountName(s.Name, s.Account) }

// Store says whether the store can be reached. While it is away, calls with valid logins
// go on, and nothing is lost.
type Store struct {
	Away    bool      `json:"away"`
	Since   time.Time `json:"since,omitzero"`
	Problem string    `json:"problem,omitempty"`
}

// LogLine is a line of a server's standard error as the control socket sends it. It is
// foreign text, see [host.LogLine].
type LogLine struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// ConsoleLink opens the console of a running usher, once.
type ConsoleLink struct {
	PID  int    `json:"pid"`
	Link string `json:"link"`
}

// States of servers that are not running because of their definition, beside those of
// host.State.
const (
	Held     host.State = "held"     // a project's file defines it, and no person has approved it
	Disabled host.State = "disabled" // its definition says so
	Broken   host.State = "broken"   // its definition cannot be used
)

// Word is how people read a state.
func Word(state host.State) string {
	switch state {
	case host.Disconnected:
		return "idle"
	case host.NeedsAuth:
		return "needs login"
	}
	return string(state)
}

// Settle gives a server that does not run the state of its definition or its login. held
// reports whether a person has to approve the definition first.
func (s *Server) Settle(srv config.Server, held func() bool) {
	if s.State != host.Disconnected {
		return
	}
	switch {
	case srv.Problem != nil:
		s.State, s.LastError = Broken, srv.Problem.Error()
	case held():
		s.State = Held
	case srv.Disabled:
		s.State = Disabled
	case s.Auth.NeedsLogin():
		s.State = host.NeedsAuth
	}
}
