package surface

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/policy"
)

// lane is an agent's session as far as servers of the older era have to know of it.
type lane struct {
	agent Agent

	mu    sync.Mutex // guards what follows
	own   bool       // servers of the older era get a connection of its own
	level []byte     // raw log level that the agent asked for, nil for none
	used  map[policy.Key]bool
	told  map[policy.Key]bool           // know the level
	subs  map[string]context.CancelFunc // resources subscribed to, by shown address
}

type laneID struct{ principal, name string }

// lanes knows all lanes there are.
type lanes struct {
	mu   sync.RWMutex // guards what follows
	all  map[laneID]*lane
	free map[policy.Key][]string // borrowed lanes nobody uses, by key with the sum of capabilities as lane
	made int
	idle int // in free
}

// open returns the lane of an agent, nil when it has none.
func (ls *lanes) open(a Agent) *lane {
	if a.Lane == "" {
		return nil
	}
	id := laneID{a.Principal, a.Lane}
	ls.mu.RLock()
	l := ls.all[id]
	ls.mu.RUnlock()
	if l != nil {
		return l
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l = ls.all[id]; l != nil {
		return l
	}
	return ls.add(id, a)
}

// add needs mu.
func (ls *lanes) add(id laneID, a Agent) *lane {
	if ls.all == nil {
		ls.all, ls.free = map[laneID]*lane{}, map[policy.Key][]string{}
	}
	l := &lane{agent: a, own: canAnswer(a.Capabilities), used: map[policy.Key]bool{}, told: map[policy.Key]bool{}, subs: map[string]context.CancelFunc{}}
	ls.all[id] = l
	return l
}

func (ls *lanes) of(k policy.Key) *lane {
	ls.mu.RLock()
	defer ls.mu.RUnlock()
	return ls.all[laneID{k.Principal, k.Lane}]
}

func (ls *lanes) remove(a Agent) *lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	id := laneID{a.Principal, a.Lane}
	l := ls.all[id]
	delete(ls.all, id)
	return l
}

// canAnswer reports whether an agent declared that servers may ask it something.
func canAnswer(capabilities []byte) bool {
	for m := jsonx.Object(capabilities); m.Next(); {
		switch string(m.Key) {
		case "sampling", "elicitation", "roots":
			if jsonx.TypeOf(m.Value) == "object" {
				return true
			}
		}
	}
	return false
}

// mayAsk reports whether a server may ask something before it answers a method.
func mayAsk(method string) bool {
	return method == wire.MethodToolsCall || method == wire.MethodPromptsGet || method == wire.MethodResourcesRead
}

// ownLane reports whether the lane needs connections of its own.
func (l *lane) ownLane() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own
}

// use notes that a connection belongs to the lane.
func (l *lane) use(k policy.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used[k] = true
}

// claim makes connections its own from now on.
func (l *lane) claim() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own = true
}

// route decides over which connection a request goes, and when the connection may
// be used by others again. A modern server knows no sessions, so all share one
// connection. An older one that may ask the agent gets one per session; for an agent
// without sessions one is borrowed for as long as the request takes.
func (s *Surface) route(ctx context.Context, a Agent, k policy.Key, r *Request) (routed, error) {
	k.Principal = a.Principal
	l, borrows := s.needs(a, r)
	version, err := s.versionOf(ctx, k, l, borrows)
	out := routed{key: k, version: version, done: func() {}}
	switch {
	case err != nil || wire.Modern(version):
	case l != nil:
		out.key.Lane = a.Lane
		l.use(out.key)
		s.tellLevel(ctx, l, out.key)
	case borrows:
		out.key.Lane = s.lanes.borrow(a, k)
		s.lend(ctx, out.key, r)
		out.done = func() { s.giveBack(a, out.key) }
	}
	return out, err
}

// routed is a connection that was decided on.
type routed struct {
	key     policy.Key
	version string
	done    func()
}

// needs says what a request needs of an older server: a connection of the agent's
// own lane, or one that is borrowed, or nothing.
func (s *Surface) needs(a Agent, r *Request) (own *lane, borrows bool) {
	if !wire.Modern(a.Version) && a.Lane != "" {
		if l := s.lanes.open(a); l.ownLane() {
			return l, false
		}
		return nil, false
	}
	if !mayAsk(r.Method) {
		return nil, false
	}
	return nil, r.OnRequest != nil && canAnswer(a.Capabilities) || r.OnNotification != nil && levelOf(r.Params) != nil
}

// levelOf is the log level that a modern request asks for, raw, nil for none.
func levelOf(params []byte) []byte {
	level, _ := jsonx.Path(params, "_meta", wire.MetaLogLevel)
	return level
}

// versionOf is the revision that a server speaks. Only where it makes a difference
// a server that was never seen is asked first, over the connection that an older
// one would need anyway.
func (s *Surface) versionOf(ctx context.Context, k policy.Key, own *lane, borrows bool) (string, error) {
	listing, _, err := s.gate.Known(ctx, k)
	if err != nil || listing.Version != "" || own == nil && !borrows {
		return listing.Version, err
	}
	if own != nil {
		k.Lane = own.agent.Lane
		own.use(k)
		if listing, _, err = s.gate.Known(ctx, k); err != nil || listing.Version != "" {
			return listing.Version, err
		}
	}
	if listing, err = s.gate.Tools(ctx, k); err == nil && own != nil && wire.Modern(listing.Version) {
		s.opt.Hosted.Release(k)
	}
	return listing.Version, err
}

// lend prepares a borrowed connection for one request: the server says as much as
// was asked for.
func (s *Surface) lend(ctx context.Context, k policy.Key, r *Request) {
	level := levelOf(r.Params)
	if level == nil {
		return
	}
	l := s.lanes.of(k)
	l.mu.Lock()
	if !bytes.Equal(level, l.level) {
		l.level = bytes.Clone(level)
		clear(l.told)
	}
	l.mu.Unlock()
	s.tellLevel(ctx, l, k)
}

// How many connections that can be borrowed wait for the next who needs one: of one
// kind, and of all.
const (
	maxFree    = 2
	maxFreeAll = 64
)

// borrow returns the name of a lane that nobody else uses meanwhile.
func (ls *lanes) borrow(a Agent, k policy.Key) string {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	k.Lane = capabilitySum(a)
	if free := ls.free[k]; len(free) > 0 {
		ls.idle--
		if ls.free[k] = free[:len(free)-1]; len(free) == 1 {
			delete(ls.free, k)
		}
		return free[len(free)-1]
	}
	ls.made++
	name := fmt.Sprintf("borrowed-%d", ls.made)
	ls.add(laneID{a.Principal, name}, Agent{Principal: a.Principal, Lane: name, Capabilities: a.Capabilities, ClientInfo: a.ClientInfo})
	return name
}

func (s *Surface) giveBack(a Agent, k policy.Key) {
	ls := &s.lanes
	ls.mu.Lock()
	pool := k
	pool.Lane = capabilitySum(a)
	keep := len(ls.free[pool]) < maxFree && ls.idle < maxFreeAll
	if keep {
		ls.idle++
		ls.free[pool] = append(ls.free[pool], k.Lane)
	} else {
		delete(ls.all, laneID{k.Principal, k.Lane})
	}
	ls.mu.Unlock()
	if !keep {
		s.opt.Hosted.Release(k)
	}
}

func capabilitySum(a Agent) string {
	sum := sha256.Sum256(append(append([]byte(nil), a.Capabilities...), a.ClientInfo...))
	return hex.EncodeToString(sum[:8])
}

// LaneCapabilities are the client capabilities to declare on the connection of a
// lane, nil for connections that are shared.
func (s *Surface) LaneCapabilities(k policy.Key) []byte {
	if l := s.lanes.of(s.normal(k)); k.Lane != "" && l != nil {
		return l.agent.Capabilities
	}
	return nil
}

// LaneAsk answers a question that a server asks on the connection of a lane and that
// belongs to no request.
func (s *Surface) LaneAsk(ctx context.Context, k policy.Key, method string, params []byte) ([]byte, *wire.Error) {
	if l := s.lanes.of(s.normal(k)); k.Lane != "" && l != nil && l.agent.Ask != nil {
		return l.agent.Ask(ctx, method, params)
	}
	return nil, wire.Errorf(wire.CodeMethodNotFound, "%s is not supported by this client", method)
}

// closeLane ends everything that was held for a lane.
func (s *Surface) closeLane(a Agent) {
	if a.Lane == "" {
		return
	}
	l := s.lanes.remove(a)
	if l == nil {
		return
	}
	l.mu.Lock()
	used, subs := l.used, l.subs
	l.used, l.subs = map[policy.Key]bool{}, map[string]context.CancelFunc{}
	l.mu.Unlock()
	for _, cancel := range subs {
		cancel()
	}
	for k := range used {
		s.opt.Hosted.Release(k)
	}
}
