package policy

import (
	"cmp"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy/budget"
	"github.com/usher-mcp/usher/policy/pins"
)

// accountID is an authorization context at a server.
type accountID struct{ principal, server, account string }

// accountState is what the gate remembers about one of them.
type accountState struct {
	server *serverState
	line   line // to the connection that all lanes share
	ruled  atomic.Pointer[ruled]
	tools  atomic.Pointer[toolset]
	// When a doubtful list may be read again, and one that lacks a tool, in Unix
	// nanoseconds.
	confirm, reread atomic.Int64

	marks [families]atomic.Uint64
	id    accountID

	turn chan struct{} // holds a token while nobody builds tools; the rest is the builder's
	pins pins.Observer
}

// serverState is shared by all who use a server.
type serverState struct {
	meter atomic.Pointer[budget.Meter]
	marks [families]atomic.Uint64 // of entries for everybody
	mu    sync.Mutex              // guards replacing topics
	// topics are those whose results declared a ttlMs.
	topics atomic.Pointer[map[topic]bool]
}

// maxTopics bounds what is remembered per server.
const maxTopics = 4096

// accounts finds them.
type accounts struct {
	mu      sync.RWMutex // guards both maps
	all     map[accountID]*accountState
	servers map[string]*serverState
}

// account returns what is remembered about a key, making it if need be.
func (g *Gate) account(k Key) *accountState {
	if sc := g.accounts.find(k); sc != nil {
		return sc
	}
	return g.accounts.add(k, g)
}

// observer compares the lists of an account with its pins.
func (g *Gate) observer(id accountID) pins.Observer {
	return pins.Observer{
		Records: g.store, Lock: g.opt.Lock, Log: g.opt.Log,
		Principal: id.principal, Server: id.server, Account: id.account,
	}
}

// line returns the way to the server of a key.
func (g *Gate) line(sc *accountState, k Key) line {
	if k.Lane == "" {
		return sc.line
	}
	return g.dial(k)
}

func (s *accounts) id(k Key) accountID {
	return accountID{cmp.Or(k.Principal, host.Local), k.Server, k.Account}
}

// find is nil when nothing is remembered.
func (s *accounts) find(k Key) *accountState {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all[s.id(k)]
}

func (s *accounts) add(k Key, g *Gate) *accountState {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.id(k)
	if sc := s.all[id]; sc != nil {
		return sc
	}
	if s.all == nil {
		s.all, s.servers = map[accountID]*accountState{}, map[string]*serverState{}
	}
	state := s.servers[id.server]
	if state == nil {
		state = &serverState{}
		s.servers[id.server] = state
	}
	sc := &accountState{
		id: id, server: state, turn: make(chan struct{}, 1),
		line: g.dial(Key{Principal: id.principal, Server: id.server, Account: id.account}),
		pins: g.observer(id),
	}
	sc.turn <- struct{}{}
	s.all[id] = sc
	return sc
}

// keep drops the accounts for which ok is false.
func (s *accounts) keep(ok func(accountID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.all, func(id accountID, _ *accountState) bool { return !ok(id) })
}

// ofServer returns the accounts at a server.
func (s *accounts) ofServer(server string) []*accountState {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*accountState
	for id, sc := range s.all {
		if id.server == server {
			out = append(out, sc)
		}
	}
	return out
}

// budget returns the meter of the server. It is made with the first call, so that only
// servers that were called have one.
func (s *serverState) budget(b *budget.Budgets, server string) *budget.Meter {
	m := s.meter.Load()
	if m == nil {
		m = b.Meter(server)
		s.meter.Store(m)
	}
	return m
}

func (s *serverState) declared(t topic) bool {
	topics := s.topics.Load()
	return topics != nil && (*topics)[t]
}

func (s *serverState) declare(t topic) {
	if s.declared(t) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[topic]bool{t: true}
	if old := s.topics.Load(); old != nil {
		if len(*old) >= maxTopics {
			return
		}
		maps.Copy(next, *old)
	}
	s.topics.Store(&next)
}

// A family is what one notification makes outdated. Entries carry the mark their
// family had when they were asked for; with another mark they are not found.
const (
	familyTools = iota
	familyPrompts
	familyResources
	familyReads
	familyRest
	families
)

func family(method string) int {
	switch method {
	case mcp.MethodToolsList:
		return familyTools
	case mcp.MethodPromptsList:
		return familyPrompts
	case mcp.MethodResourcesList, mcp.MethodTemplatesList:
		return familyResources
	case mcp.MethodResourcesRead:
		return familyReads
	}
	return familyRest
}

// marks are those of one account, and of what is for everybody.
type marks struct{ own, shared uint64 }

func (sc *accountState) now(method string) marks {
	f := family(method)
	return marks{own: sc.marks[f].Load(), shared: sc.server.marks[f].Load()}
}

func (sc *accountState) outdate(f int) {
	sc.marks[f].Add(1)
	sc.server.marks[f].Add(1)
}

// Notified takes in a notification of a server: what it says has changed is not
// answered from the cache any more.
func (g *Gate) Notified(k Key, m mcp.Message) {
	sc := g.account(k)
	switch m.Method {
	case mcp.MethodNotifyTools:
		sc.confirm.Store(0)
		sc.outdate(familyTools)
	case mcp.MethodNotifyPrompts:
		sc.outdate(familyPrompts)
	case mcp.MethodNotifyRes:
		sc.outdate(familyResources)
	case mcp.MethodNotifyUpdated:
		sc.outdate(familyReads)
	}
}

// Relogin forgets what was kept for an account: after a login, a logout or a
// change of permissions its answers may be others.
func (g *Gate) Relogin(k Key) {
	sc := g.account(k)
	for f := range sc.marks {
		sc.marks[f].Add(1)
	}
	sc.tools.Store(nil)
	sc.confirm.Store(0)
}

// Drop forgets what is kept in memory about one account, as when it was logged out
// or nobody used it for long.
func (g *Gate) Drop(k Key) {
	id := g.accounts.id(k)
	g.accounts.keep(func(have accountID) bool { return have != id })
}

// Forget drops everything that is kept of a server's answers, for when it was
// stopped, reloaded or got another definition. Pins and budgets stay.
func (g *Gate) Forget(server string) {
	for _, sc := range g.accounts.ofServer(server) {
		for f := range sc.marks {
			sc.outdate(f)
		}
		sc.tools.Store(nil)
		sc.confirm.Store(0)
		sc.line.Forget()
	}
	g.cache.drop(server)
}

// due reports whether the time has come, and sets the next one.
func due(at *atomic.Int64, wait time.Duration) bool {
	now := time.Now().UnixNano()
	old := at.Load()
	return now >= old && at.CompareAndSwap(old, now+int64(wait))
}
