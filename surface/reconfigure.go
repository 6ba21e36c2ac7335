package surface

import (
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// Reconfigured takes in that servers came, went or changed, and that these are the
// profiles now. Agents that listen are told of what they see differently; for them
// a server that is new is asked at once what it offers.
func (s *Surface) Reconfigured(servers []string, profiles map[string]Profile) {
	s.setProfiles(profiles)
	s.snaps.clear()
	for _, name := range servers {
		s.readings.forgetServer(name)
	}
	s.checkFollows(s.life)
	listening := map[string]bool{} // principals
	s.listeners.each(func(l *listener) {
		for _, name := range servers {
			k := policy.Key{Principal: l.agent.Principal, Server: name}
			if l.sums != nil {
				listening[l.agent.Principal] = true
			} else if l.shows(k) {
				for kind := range listNotes {
					l.raise(kind)
				}
			}
		}
	})
	for principal := range listening {
		s.learnNew(principal, servers)
	}
	s.wake()
}

// AccountGone takes in that an account does not exist any more: names that lead to it
// are unknown from now on.
func (s *Surface) AccountGone() {
	s.snaps.clear()
	s.wake()
}

// learnNew begins to read the tools of servers that are there.
func (s *Surface) learnNew(principal string, servers []string) {
	there := map[string]bool{}
	for _, srv := range s.gate.Servers(s.life, policy.As(principal)) {
		there[srv.Name] = !srv.Off
	}
	for _, name := range servers {
		if there[name] {
			s.read(s.normal(policy.Key{Principal: principal, Server: name}), mcp.MethodToolsList, now)
		}
	}
}

// clear lets every view be made again.
func (c *snapshots) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = nil
}

// forgetServer is forget for all accounts at a server.
func (r *readings) forgetServer(server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, old := range r.all {
		if id.key.Server == server && !old.ended.IsZero() {
			delete(r.all, id)
		}
	}
}
