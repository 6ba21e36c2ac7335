package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/status"
)

// statusServer is one account of a server, over all instances that run it. Its JSON form
// is frozen.
type statusServer struct {
	status.Server
	Note   string        `json:"note,omitempty"`
	Ushers []statusUsher `json:"ushers"` // those that run it
}

// rankOf orders states by how much a person wants to know of them, when several
// ushers differ.
func rankOf(state host.State) int {
	return slices.Index([]host.State{host.Disconnected, host.Failed, host.Connecting, host.Connected, host.Ejected, host.NeedsAuth}, state)
}

type rowKey struct{ principal, server, account string }

// MergeBoard merges the cached status with the reports of running usher processes. For a
// server that is running, only the tools come from the cache.
func MergeBoard(remembered host.Status, running []status.Report) statusBoard {
	b := statusBoard{Servers: []statusServer{}, Ushers: []statusUsher{}, Budgets: []policy.BudgetStatus{}, Waiting: []statusLogin{}, Orphans: []string{}}
	rows := map[rowKey]*statusServer{}
	for _, r := range running {
		u := statusUsher{PID: r.PID, Started: r.Started}
		if r.Store.Away {
			u.Store = &r.Store
		}
		b.Ushers = append(b.Ushers, u)
		for _, s := range r.Servers {
			k := rowKey{s.Principal, s.Name, s.Account}
			row := rows[k]
			if row == nil {
				row = &statusServer{Ushers: []statusUsher{}}
				rows[k] = row
			}
			row.merge(s, r.PID)
		}
		b.Budgets = mergeBudgets(b.Budgets, r.Budgets)
	}
	for _, s := range remembered.Servers {
		k := rowKey{s.Principal, s.Name, s.Account}
		if row := rows[k]; row == nil {
			rows[k] = &statusServer{Server: status.Server{ServerStatus: s}, Ushers: []statusUsher{}}
		} else if row.ProtocolVersion == "" {
			row.Tools, row.Stale, row.ProtocolVersion = s.Tools, s.Stale, s.ProtocolVersion
		}
	}
	for _, row := range rows {
		b.Servers = append(b.Servers, *row)
	}
	b.sort()
	return b
}

// add adds a server that no usher runs.
func (b *statusBoard) add(s host.ServerStatus) {
	b.Servers = append(b.Servers, statusServer{Server: status.Server{ServerStatus: s}, Ushers: []statusUsher{}})
}

func (b *statusBoard) sort() {
	slices.SortFunc(b.Servers, func(a, c statusServer) int {
		return cmp.Or(cmp.Compare(a.Name, c.Name), cmp.Compare(a.Account, c.Account), cmp.Compare(a.Principal, c.Principal))
	})
}

// merge adds one connection: counts add up, and the state is the one that ranks
// highest.
func (s *statusServer) merge(r status.Server, pid int) {
	seen := s.Name != ""
	old := *s
	if !seen || rankOf(r.State) > rankOf(s.State) {
		s.Server = r
		s.Lane = "" // the row stands for all lanes
	}
	if i := slices.IndexFunc(s.Ushers, func(u statusUsher) bool { return u.PID == pid }); i < 0 {
		s.Ushers = append(s.Ushers, statusUsher{PID: pid, State: r.State})
	} else if rankOf(r.State) > rankOf(s.Ushers[i].State) {
		s.Ushers[i].State = r.State // another lane in the same usher
	}
	s.RefCount, s.InFlight = old.RefCount+r.RefCount, old.InFlight+r.InFlight
	s.RestartCount, s.CacheEntries = old.RestartCount+r.RestartCount, old.CacheEntries+r.CacheEntries
	s.ConsecutiveFailures = max(old.ConsecutiveFailures, r.ConsecutiveFailures)
	s.Active, s.Ejected = old.Active || r.Active, old.Ejected || r.Ejected
	s.Tools, s.ProtocolVersion = max(old.Tools, r.Tools), cmp.Or(s.ProtocolVersion, old.ProtocolVersion, r.ProtocolVersion)
	s.Circuit = worseCircuit(old.Circuit, r.Circuit)
	s.LastError = cmp.Or(s.LastError, old.LastError, r.LastError)
	if old.LastCall.After(s.LastCall) {
		s.LastCall = old.LastCall
	}
	if r.LastCall.After(s.LastCall) {
		s.LastCall = r.LastCall
	}
}

func worseCircuit(a, b string) string {
	for _, c := range []string{"open", "half_open"} {
		if a == c || b == c {
			return c
		}
	}
	return cmp.Or(a, b)
}

// mergeBudgets adds up runs; of a window, which all instances share, the newest count
// is the highest.
func mergeBudgets(all, more []policy.BudgetStatus) []policy.BudgetStatus {
	for _, m := range more {
		i := slices.IndexFunc(all, func(b policy.BudgetStatus) bool { return b.Server == m.Server })
		if i < 0 {
			all = append(all, m)
			continue
		}
		all[i].Run += m.Run
		all[i].WindowUsed = max(all[i].WindowUsed, m.WindowUsed)
		all[i].RunLimit, all[i].WindowLimit = max(all[i].RunLimit, m.RunLimit), max(all[i].WindowLimit, m.WindowLimit)
		if m.Refill.After(all[i].Refill) {
			all[i].Refill = m.Refill
		}
	}
	return all
}

// AddConfigured adds what only the configuration knows: why a server that does not
// run cannot, and what to do about each.
func (b *statusBoard) AddConfigured(cfg *config.Config, held func(config.Server) string) {
	for _, srv := range cfg.Servers {
		if srv.Problem == nil {
			continue
		}
		if !slices.ContainsFunc(b.Servers, func(s statusServer) bool { return s.Name == srv.Name }) {
			b.add(host.ServerStatus{
				Name: srv.Name, State: host.Disconnected, Transport: string(srv.Transport), Lazy: true, Circuit: "closed",
				Auth: host.AuthStatus{State: host.AuthNone},
			})
		}
	}
	b.sort()
	for i := range b.Servers {
		s := &b.Servers[i]
		srv, configured := cfg.Server(s.Name)
		s.Settle(srv, func() bool { return configured && held(srv) != "" })
		switch s.State {
		case status.Broken:
			s.Note = cmdutil.CleanLine(cmdutil.ReasonOf(srv.Problem)) + "; usher list " + s.Name
		case status.Held:
			s.Note = "usher approve " + s.Name
		case status.Disabled:
			s.Note = `remove "disabled" to use it`
		}
		s.Note = cmp.Or(s.Note, s.note(srv, b.Budgets))
	}
}

// note is what to know or do about a server, in one line.
func (s *statusServer) note(srv config.Server, budgets []policy.BudgetStatus) string {
	var parts []string
	for _, advice := range status.Advise(&s.Server, srv.Supervision.RestartWindow) {
		text := strings.Join(advice.Commands, ", then ")
		if advice.Reason != "" || s.State == host.Failed {
			text = cmdutil.Truncate(cmdutil.CleanLine(advice.Reason), 120) + ": " + text
		}
		parts = append(parts, text)
	}
	if s.State == host.Disconnected && s.Lazy {
		parts = append([]string{"connects on the first call"}, parts...)
	}
	if s.InFlight > 0 {
		parts = append(parts, fmt.Sprintf("%d in flight", s.InFlight))
	}
	for _, u := range s.Ushers {
		if u.State != s.State && u.State != host.Disconnected {
			parts = append(parts, fmt.Sprintf("%s in pid %d", status.Word(u.State), u.PID))
		}
	}
	for _, b := range budgets {
		if b.Server == s.Name {
			parts = append(parts, budgetText(b))
		}
	}
	return strings.Join(parts, "; ")
}

func budgetText(b policy.BudgetStatus) string {
	if b.WindowLimit > 0 {
		return fmt.Sprintf("%d of %d calls per %s", b.WindowUsed, b.WindowLimit, Spoken(b.Window))
	}
	return fmt.Sprintf("%d of %d calls per run", b.Run, b.RunLimit)
}
