package host

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host/internal/supervise"
)

// Status is the state of everything. Its JSON form is frozen.
type Status struct {
	Servers []ServerStatus `json:"servers"`
}

// ServerStatus is the state of one connection, or of a registered server that has
// none yet.
type ServerStatus struct {
	Name                string     `json:"name"`
	Account             string     `json:"account"`
	Principal           string     `json:"principal,omitempty"` // absent for the local user
	Lane                string     `json:"lane,omitempty"`      // absent for the shared one
	State               State      `json:"state"`
	Transport           string     `json:"transport"`
	ProtocolVersion     string     `json:"protocol_version"`
	Active              bool       `json:"active"` // there is a connection
	Lazy                bool       `json:"lazy"`
	RefCount            int        `json:"ref_count"` // callers that hold the connection
	InFlight            int        `json:"in_flight"` // in-flight requests
	RestartCount        int        `json:"restart_count"`
	ConsecutiveFailures int        `json:"consecutive_failures"`
	Circuit             string     `json:"circuit"` // closed, open or half_open
	Ejected             bool       `json:"ejected"`
	CacheEntries        int        `json:"cache_entries"` // filled in by the owner of the cache
	Tools               int        `json:"tools"`
	Stale               bool       `json:"stale"`
	LastError           string     `json:"last_error"`
	Auth                AuthStatus `json:"auth"`
}

// AuthStatus is where the login to a server stands.
type AuthStatus struct {
	// State is none, ok, pending or needs_login.
	State      string    `json:"state"`
	Reason     string    `json:"reason,omitempty"`
	Command    string    `json:"command,omitempty"` // the next step
	Expires    time.Time `json:"expires,omitzero"`
	CanRefresh bool      `json:"can_refresh,omitempty"`
}

// The states of a login.
const (
	AuthNone       = "none"
	AuthOK         = "ok"
	AuthPending    = "pending"
	AuthNeedsLogin = "needs_login"
)

// NeedsLogin reports whether a person has to log in.
func (a AuthStatus) NeedsLogin() bool { return a.State == AuthNeedsLogin }

// statusSource is an Authorizer that can say more about a login than the Host
// knows.
type statusSource interface {
	AuthStatus(k Key, srv config.Server) AuthStatus
}

// Status returns the state of every registered server, sorted by name.
func (h *Host) Status() Status {
	out := Status{Servers: []ServerStatus{}}
	h.mu.Lock()
	var bare []*registration
	var units []*unit
	for _, reg := range h.servers {
		if len(reg.units) == 0 {
			bare = append(bare, reg)
		}
		for _, u := range reg.units {
			units = append(units, u)
		}
	}
	h.mu.Unlock()
	for _, reg := range bare {
		out.Servers = append(out.Servers, h.newUnitStatus(Key{Server: reg.srv.Name}.normal(), reg))
	}
	for _, u := range units {
		out.Servers = append(out.Servers, u.status())
	}
	slices.SortFunc(out.Servers, func(a, b ServerStatus) int {
		return cmp.Or(compareNames(a.Name, a.Account, b.Name, b.Account), cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Lane, b.Lane))
	})
	return out
}

// StatusOf returns the state of every registered server for one principal: of the
// connections of that principal, or of a server to which it has none yet.
func (h *Host) StatusOf(principal string) []ServerStatus {
	principal = Key{Principal: principal}.normal().Principal
	h.mu.Lock()
	var bare []*registration
	var units []*unit
	for _, reg := range h.servers {
		own := false
		for k, u := range reg.units {
			if k.Principal == principal {
				units = append(units, u)
				own = own || k.Account == "" && k.Lane == ""
			}
		}
		if !own {
			bare = append(bare, reg)
		}
	}
	h.mu.Unlock()
	out := make([]ServerStatus, 0, len(bare)+len(units))
	for _, reg := range bare {
		out = append(out, h.newUnitStatus(Key{Principal: principal, Server: reg.srv.Name}, reg))
	}
	for _, u := range units {
		out = append(out, u.status())
	}
	slices.SortFunc(out, func(a, b ServerStatus) int {
		return cmp.Or(compareNames(a.Name, a.Account, b.Name, b.Account), cmp.Compare(a.Lane, b.Lane))
	})
	return out
}

func compareNames(name, account, otherName, otherAccount string) int {
	return cmp.Or(cmp.Compare(name, otherName), cmp.Compare(account, otherAccount))
}

// newUnitStatus is the state of a server that nobody has asked for yet.
func (h *Host) newUnitStatus(k Key, reg *registration) ServerStatus {
	srv := *reg.srv
	s := ServerStatus{
		Name: srv.Name, State: Disconnected, Transport: string(srv.Transport), Lazy: reg.lazy, Circuit: string(supervise.Closed),
	}
	if srv.Problem != nil {
		s.State, s.LastError = Failed, srv.Problem.Error()
	}
	if k.Principal != Local {
		s.Principal = k.Principal
	}
	s.addCatalog(h.opt.Memory.Tools(h.life, k, srv.Digest()))
	s.addAuth(h, k, srv)
	return s
}

func (s *ServerStatus) addCatalog(c Catalog, ok bool) {
	if ok {
		s.Tools, s.Stale, s.ProtocolVersion = len(c.Tools), c.Stale, c.Version
	}
}

func (s *ServerStatus) addAuth(h *Host, k Key, srv config.Server) {
	if src, ok := h.opt.Auth.(statusSource); ok && srv.Transport != config.TransportStdio && !s.Auth.NeedsLogin() {
		s.Auth = src.AuthStatus(k, srv)
	}
	s.Auth.State = cmp.Or(s.Auth.State, AuthNone)
}

func (u *unit) status() ServerStatus {
	c, failures := u.breaker.Look()
	s := ServerStatus{
		Name: u.key.Server, Account: u.key.Account, Lane: u.key.Lane, Transport: string(u.srv.Transport), Lazy: u.reg.lazy,
		RestartCount: u.budget.Used(), ConsecutiveFailures: failures, Circuit: string(c), Ejected: u.budget.IsEjected(),
	}
	if u.key.Principal != Local {
		s.Principal = u.key.Principal
	}
	u.recall(u.h.life)
	s.addCatalog(u.catalog.view())
	u.mu.Lock()
	if s.State = u.state; s.State == Ejected && !s.Ejected {
		s.State = Failed // the ejection is over, and nobody has tried yet
	}
	if u.lastErr != nil {
		s.LastError = u.lastErr.Error()
	}
	if l := u.live; l != nil {
		s.Active, s.RefCount, s.ProtocolVersion = true, l.refs+u.waiters, l.conn.Version()
		s.InFlight = int(l.calls.Load())
	} else {
		s.RefCount = u.waiters
	}
	if u.state == NeedsAuth {
		s.Auth = AuthStatus{State: AuthNeedsLogin, Reason: u.reason, Command: u.command}
	}
	u.mu.Unlock()
	s.addAuth(u.h, u.key, *u.srv)
	return s
}

// LogLine is a line that a server wrote to standard error. It is untrusted
// text: callers neutralise control characters before they show it.
type LogLine struct {
	Seq     uint64
	Time    time.Time
	Text    string
	Partial bool // the line goes on
}

// Logs yields what a server wrote to standard error, oldest first; with follow also
// what it writes from now on, until ctx ends. There is something to yield where
// Options.Connection gives a ring.
func (h *Host) Logs(ctx context.Context, k Key, follow bool) (iter.Seq[LogLine], error) {
	u, err := h.unit(k)
	if err != nil {
		return nil, err
	}
	return func(yield func(LogLine) bool) {
		ring := u.base.Stderr
		switch {
		case ring == nil:
		case follow:
			for l := range ring.Follow(ctx) {
				if !yield(LogLine{l.Seq, l.Time, l.Text, l.Partial}) {
					return
				}
			}
		default:
			for _, l := range ring.Lines() {
				if !yield(LogLine{l.Seq, l.Time, l.Text, l.Partial}) {
					return
				}
			}
		}
	}, nil
}
