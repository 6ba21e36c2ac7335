package surface

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// lane is an agent's session as far as servers of the older era have to know of it.
type lane struct {
	agent Agent

	mu    sync.Mutex                    // guards what follows
	own   bool                          // servers of the older era get a connection of its own
	level []byte                        // raw log level that the agent asked for, nil for none
	used  map[policy.Key]string         // connections of its own, and their revision; "" while it is not known
	told  map[policy.Key]bool           // know the level
	subs  map[string]context.CancelFunc // resources subscribed to, by shown address
	asked map[subscription]bool         // what older servers were told to send updates of
}

// subscription is a resource at its server.
type subscription struct {
	key policy.Key
	uri string
}

type laneID struct{ principal, name string }

// lanes knows all lanes there are.
type lanes struct {
	mu   sync.RWMutex // guards what follows
	all  map[laneID]*lane
	free map[policy.Key][]string // borrowed lanes nobody uses, by key with the sum of the borrower as lane
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
	l := &lane{
		agent: a, own: canAnswer(a.Capabilities), used: map[policy.Key]string{}, told: map[policy.Key]bool{},
		subs: map[string]context.CancelFunc{}, asked: map[subscription]bool{},
	}
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
	return method == mcp.MethodToolsCall || method == mcp.MethodPromptsGet || method == mcp.MethodResourcesRead
}

// ownLane reports whether the lane needs connections of its own.
func (l *lane) ownLane() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own
}

// use notes that a connection belongs to the lane, and which revision it speaks.
func (l *lane) use(k policy.Key, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used[k] = version
}

// speaks is the revision of a connection, "" when it is not known.
func (l *lane) speaks(k policy.Key) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used[k]
}

// olderOnes are the connections of its own that may be of the older era.
func (l *lane) olderOnes() []policy.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []policy.Key
	for k, version := range l.used {
		if !mcp.Stateless(version) {
			all = append(all, k)
		}
	}
	return all
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
func (s *Surface) route(ctx context.Context, a Agent, k policy.Key, r *mcp.Request) (routed, error) {
	k.Principal = a.Principal
	own, borrows := s.needs(a, r)
	version, err := s.gate.Version(ctx, a.who, k)
	out := routed{key: k, version: version, done: func() {}}
	switch {
	case err != nil:
	case own != nil:
		s.routeOwn(ctx, a, own, &out)
	case borrows:
		err = s.routeBorrowed(ctx, a, r, &out)
	}
	return out, err
}

// routeOwn decides for a session of the older era. A server of both eras speaks the
// older one with it: what it asks then reaches the agent in the way both know.
func (s *Surface) routeOwn(ctx context.Context, a Agent, l *lane, out *routed) {
	k := out.key
	k.Lane = l.agent.Lane
	version := l.speaks(k)
	if version == "" {
		l.use(k, "")
		var err error
		if version, err = s.gate.Connect(ctx, a.who, k); err == nil {
			l.use(k, version)
		} // else the request itself meets with the problem, and tells it
		if mcp.Stateless(version) {
			s.gate.Release(k) // there is no older era: all share one connection
		}
	}
	out.version = version
	if mcp.Stateless(version) {
		return
	}
	out.key = k
	s.tellLevel(ctx, l, k)
}

// routeBorrowed decides for an agent without sessions. A server that was never seen
// is asked first.
func (s *Surface) routeBorrowed(ctx context.Context, a Agent, r *mcp.Request, out *routed) error {
	if out.version == "" {
		listing, err := s.gate.Tools(ctx, a.who, out.key)
		if err != nil {
			return err
		}
		out.version = listing.Version
	}
	if mcp.Stateless(out.version) {
		return nil
	}
	out.key.Lane = s.lanes.borrow(a, out.key)
	s.lend(ctx, out.key, r)
	k := out.key
	out.done = func() { s.giveBack(a, k) }
	return nil
}

// routed is a connection that was decided on.
type routed struct {
	key     policy.Key
	version string
	done    func()
}

// needs says what a request needs of an older server: a connection of the agent's
// own lane, or one that is borrowed, or nothing.
func (s *Surface) needs(a Agent, r *mcp.Request) (own *lane, borrows bool) {
	if !mcp.Stateless(a.Version) && a.Lane != "" {
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
	level, _ := jsonx.Path(params, "_meta", mcp.MetaLogLevel)
	return level
}

// lend prepares a borrowed connection for one request: the server says as much as
// was asked for.
func (s *Surface) lend(ctx context.Context, k policy.Key, r *mcp.Request) {
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
	if _, err := s.gate.Connect(ctx, l.agent.who, k); err == nil { // one that has to be made is greeted with it
		s.tellLevel(ctx, l, k)
	}
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
	k.Lane = borrowerSum(a)
	if free := ls.free[k]; len(free) > 0 {
		ls.idle--
		if ls.free[k] = free[:len(free)-1]; len(free) == 1 {
			delete(ls.free, k)
		}
		return free[len(free)-1]
	}
	ls.made++
	name := fmt.Sprintf("borrowed-%d", ls.made)
	ls.add(laneID{a.Principal, name}, Agent{Principal: a.Principal, Lane: name, Capabilities: a.Capabilities, ClientInfo: a.ClientInfo, who: a.who})
	return name
}

func (s *Surface) giveBack(a Agent, k policy.Key) {
	ls := &s.lanes
	ls.mu.Lock()
	pool := k
	pool.Lane = borrowerSum(a)
	keep := len(ls.free[pool]) < maxFree && ls.idle < maxFreeAll
	if keep {
		ls.idle++
		ls.free[pool] = append(ls.free[pool], k.Lane)
	} else {
		delete(ls.all, laneID{k.Principal, k.Lane})
	}
	ls.mu.Unlock()
	if !keep {
		s.gate.Release(k)
	}
}

// borrowerSum tells apart who may use a connection one after the other: what a server
// says late about one request must not reach a caller with another token or scope.
func borrowerSum(a Agent) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", a.Capabilities, a.ClientInfo, a.Credential, a.who.Scope.Key()))
	return hex.EncodeToString(sum[:8])
}

// Lane is what the connection of one key is made from.
type Lane struct {
	// Capabilities to declare; nil: none.
	Capabilities []byte
	// Version to speak where the server can; "": the server chooses.
	Version string
	// Ask answers what a server asks that belongs to no request.
	Ask func(ctx context.Context, method string, params []byte) ([]byte, *mcp.Error)
	// Greet returns what a new session with the server is told first.
	Greet func() []mcp.Message
}

// Lane returns what the connection of a key has to know of the agent's session that
// it belongs to. A connection that is shared belongs to none.
func (s *Surface) Lane(k policy.Key) Lane {
	k = s.normal(k)
	own := s.lanes.of(k)
	if k.Lane == "" || own == nil {
		return Lane{Ask: refuse}
	}
	l := Lane{Capabilities: own.agent.Capabilities, Ask: own.agent.Ask, Greet: func() []mcp.Message { return own.greet(k) }}
	if l.Ask == nil {
		l.Ask = refuse
	}
	if v := own.agent.Version; v != "" && !mcp.Stateless(v) {
		l.Version = v
	}
	return l
}

func refuse(_ context.Context, method string, _ []byte) ([]byte, *mcp.Error) {
	return nil, mcp.Errorf(mcp.CodeMethodNotFound, "%s is not supported by this client", method)
}

// greet is what the server has to know of the session, and would not after its
// connection was lost.
func (l *lane) greet(k policy.Key) []mcp.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []mcp.Message
	if l.level != nil {
		l.told[k] = true
		all = append(all, mcp.Message{Method: mcp.MethodSetLevel, Params: jsonx.Set(nil, "level", l.level)})
	}
	for sub := range l.asked {
		if sub.key == k {
			all = append(all, mcp.Message{Method: mcp.MethodSubscribe, Params: jsonx.Set(nil, "uri", jsonx.Quote(sub.uri))})
		}
	}
	return all
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
	l.used, l.subs = map[policy.Key]string{}, map[string]context.CancelFunc{}
	l.mu.Unlock()
	for _, cancel := range subs {
		cancel()
	}
	for k := range used {
		s.gate.Release(k)
	}
}
