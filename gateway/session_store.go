package gateway

import (
	"sync"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/lifetime"
)

// sessions holds those that are found by their id, bounded in number and in how
// long nobody uses them.
type sessionStore struct {
	max, share int
	idle       time.Duration

	mu     sync.Mutex // guards what follows
	all    map[string]*session
	of     map[string]int // by principal
	closed bool
}

func (t *sessionStore) init(limit int, idle time.Duration) {
	t.max, t.share, t.idle = limit, max(limit/4, 1), idle
	t.all, t.of = map[string]*session{}, map[string]int{}
}

func (t *sessionStore) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// evictable is how long a session must have been idle to make room for another.
const evictable = time.Minute

// add registers a session. When there is no room the longest idle one of the same
// principal goes, which its agent notices by a 404 and starts again; else false.
func (t *sessionStore) add(s *session) bool {
	t.mu.Lock()
	var old *session
	if len(t.all) >= t.max || t.of[s.agent.Principal] >= t.share {
		old = t.longestIdle(s.agent.Principal)
	}
	ok := !t.closed && (old != nil || len(t.all) < t.max && t.of[s.agent.Principal] < t.share)
	if ok {
		if old != nil {
			t.remove(old)
		}
		t.all[s.id] = s
		t.of[s.agent.Principal]++
		s.timer = time.AfterFunc(s.left(t.idle), func() { t.check(s) })
	}
	t.mu.Unlock()
	if ok && old != nil {
		old.close(errEnded)
	}
	return ok
}

// longestIdle needs mu.
func (t *sessionStore) longestIdle(principal string) *session {
	var found *session
	longest := evictable
	for _, s := range t.all {
		if d := s.idleFor(); s.agent.Principal == principal && d >= longest {
			found, longest = s, d
		}
	}
	return found
}

// remove needs mu.
func (t *sessionStore) remove(s *session) {
	delete(t.all, s.id)
	if t.of[s.agent.Principal]--; t.of[s.agent.Principal] == 0 {
		delete(t.of, s.agent.Principal)
	}
	s.timer.Stop()
}

// find returns a session to the client that opened it: possession of its id is not
// enough. It lasts as long as the newest token of that client.
func (t *sessionStore) find(id string, who authn.Identity, e *endpoint) *session {
	t.mu.Lock()
	s := t.all[id]
	t.mu.Unlock()
	if s == nil || !s.owner.Same(who) || s.end.key != e.key {
		return nil
	}
	s.extend(who.Expires)
	return s
}

// addTo adds the credentials of all sessions to a set.
func (t *sessionStore) addTo(set map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.all {
		set[s.owner.Credential] = true
	}
}

// endCredential closes the sessions that were opened with a credential.
func (t *sessionStore) endCredential(credential string) {
	t.mu.Lock()
	var over []*session
	for _, s := range t.all {
		if s.owner.Credential == credential {
			t.remove(s)
			over = append(over, s)
		}
	}
	t.mu.Unlock()
	for _, s := range over {
		s.close(lifetime.ErrRevoked)
	}
}

// end closes a session, if it is still there.
func (t *sessionStore) end(s *session) {
	t.mu.Lock()
	there := t.all[s.id] == s
	if there {
		t.remove(s)
	}
	t.mu.Unlock()
	if there {
		s.close(errEnded)
	}
}

// endID closes whichever session has that id.
func (t *sessionStore) endID(id string) {
	t.mu.Lock()
	s := t.all[id]
	t.mu.Unlock()
	if s != nil {
		t.end(s)
	}
}

// swap puts a session in the place of one that never had a handshake. False: that
// place is taken.
func (t *sessionStore) swap(old, s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[old.id] != old || old.greeted {
		return false
	}
	old.timer.Stop()
	s.greeted = true
	t.all[s.id] = s
	s.timer = time.AfterFunc(s.left(t.idle), func() { t.check(s) })
	return true
}

// check ends a session that nobody used for long or whose token has expired, and
// looks again later otherwise.
func (t *sessionStore) check(s *session) {
	left := s.left(t.idle)
	if left <= 0 {
		t.end(s)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[s.id] == s {
		s.timer.Reset(max(left, time.Millisecond))
	}
}

func (t *sessionStore) closeAll() {
	t.mu.Lock()
	t.closed = true
	var all []*session
	for _, s := range t.all {
		t.remove(s)
		all = append(all, s)
	}
	t.mu.Unlock()
	for _, s := range all {
		s.close(errEnded)
	}
}
