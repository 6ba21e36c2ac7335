package surface

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
)

// gatherFor is how long changes of lists are gathered before they are told.
const gatherFor = 100 * time.Millisecond

// listener is an agent that hears of changes.
type listener struct {
	agent Agent
	want  Subscription
	on    func(mcp.Message)
	// sums returns what the lists are now; a list is also told to have changed when
	// its sum has, as after a login. Nil: only what servers say is told.
	sums func(context.Context) lists3
	// shows reports whether the view shows a server; shown is the address it gives
	// a resource of it.
	shows func(k policy.Key) bool
	shown func(k policy.Key, uri string) string
	ready func() // the listener hears everything from now on

	mu     sync.Mutex // guards raised
	raised [3]bool    // changed, as servers said
	woken  chan struct{}
}

// lists3 holds something for tools, prompts and resources.
type lists3 [3][32]byte

// The notifications of lists3, in order.
var listNotes = [3]string{mcp.MethodNotifyTools, mcp.MethodNotifyPrompts, mcp.MethodNotifyRes}

// listeners are all of them.
type listeners struct {
	mu  sync.Mutex // guards all
	all map[*listener]bool
}

func (ls *listeners) set(l *listener, on bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.all == nil {
		ls.all = map[*listener]bool{}
	}
	if on {
		ls.all[l] = true
	} else {
		delete(ls.all, l)
	}
}

// each calls f without the lock.
func (ls *listeners) each(f func(*listener)) {
	ls.mu.Lock()
	all := make([]*listener, 0, len(ls.all))
	for l := range ls.all {
		all = append(all, l)
	}
	ls.mu.Unlock()
	for _, l := range all {
		f(l)
	}
}

func (l *listener) wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

func (l *listener) raise(kind int) {
	l.mu.Lock()
	l.raised[kind] = true
	l.mu.Unlock()
	l.wake()
}

func (l *listener) wants(kind int) bool {
	return [...]bool{l.want.Tools, l.want.Prompts, l.want.Resources}[kind]
}

// run tells the agent of changed lists until ctx ends.
func (s *Surface) run(ctx context.Context, l *listener) error {
	l.woken = make(chan struct{}, 1)
	s.listeners.set(l, true) // before anything that takes time: the agent counts on it
	defer s.listeners.set(l, false)
	var last lists3
	if l.sums != nil {
		last = l.sums(ctx)
	}
	l.ready()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.life.Done():
			return context.Canceled
		case <-l.woken:
		}
		pause := time.NewTimer(gatherFor)
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
		last = l.tell(ctx, last)
	}
}

// tell sends what has changed since last and returns what is.
func (l *listener) tell(ctx context.Context, last lists3) lists3 {
	l.mu.Lock()
	changed := l.raised
	l.raised = [3]bool{}
	l.mu.Unlock()
	are := last
	if l.sums != nil {
		are = l.sums(ctx)
		for i := range are {
			changed[i] = changed[i] || are[i] != last[i]
		}
	}
	for i, method := range listNotes {
		if changed[i] && l.wants(i) {
			l.on(notification(method, nil))
		}
	}
	return are
}

// wake lets all listeners look whether their lists have changed.
func (s *Surface) wake() { s.listeners.each((*listener).wake) }

// Notified takes in what a server says outside any request. It does not block.
func (s *Surface) Notified(k policy.Key, m mcp.Message) {
	k = s.normal(k)
	switch m.Method {
	case mcp.MethodNotifyTools, mcp.MethodNotifyPrompts, mcp.MethodNotifyRes:
		s.listChanged(k, m.Method)
	case mcp.MethodNotifyUpdated:
		uri := jsonx.GetText(m.Params, "uri")
		s.listeners.each(func(l *listener) {
			if !l.hears(k) || !l.whole(k) {
				return
			}
			if shown, ok := s.followed(l, k, uri); ok {
				l.on(updated(m, shown))
			}
		})
	default:
		if on := s.flights.only(k); on != nil {
			on(m)
			return
		}
		s.listeners.each(func(l *listener) {
			if l.agent.Lane != "" && l.hears(k) && (k.Lane != "" || l.whole(k)) {
				l.on(m)
			}
		})
	}
}

// hears reports whether something that was said on the connection of k is for l.
func (l *listener) hears(k policy.Key) bool {
	return l.agent.Principal == k.Principal && (k.Lane == "" || k.Lane == l.agent.Lane) && l.shows(k) && l.may(k, Subscription{})
}

// whole reports whether the agent may hear of more than the tools of a server.
func (l *listener) whole(k policy.Key) bool { return l.may(k, Subscription{Resources: true}) }

// may asks the gate: the rules and the scope may have changed since the agent began
// to listen, and a legacy server tells what it was once asked to tell.
func (l *listener) may(k policy.Key, want Subscription) bool {
	a := l.agent.now()
	return a.at.s.gate.MayListen(a.at.s.life, a.who, k, want) == nil
}

// followed is the address under which a listener knows a resource, and whether it
// wants to hear of it. What is said on a lane's own connection it does.
func (s *Surface) followed(l *listener, k policy.Key, uri string) (string, bool) {
	shown := l.shown(k, uri)
	full := naming.WithServer(naming.Label(k.Server, k.Account), uri)
	for _, form := range [...]string{shown, full} {
		if slices.Contains(l.want.URIs, form) {
			return form, true
		}
	}
	if k.Lane == "" {
		return shown, false
	}
	if ln := s.lanes.of(k); ln != nil && ln.subscribed(full) {
		return full, true
	}
	return shown, true
}

// listChanged has a list read again and tells who listens. An announcement is passed
// on even where the list turns out to be the same: the agent asked for those.
func (s *Surface) listChanged(k policy.Key, method string) {
	kind, methods := 0, []string{mcp.MethodToolsList}
	switch method {
	case mcp.MethodNotifyPrompts:
		kind, methods = 1, []string{mcp.MethodPromptsList}
	case mcp.MethodNotifyRes:
		kind, methods = 2, []string{mcp.MethodResourcesList, mcp.MethodTemplatesList}
	}
	s.listeners.each(func(l *listener) {
		if l.hears(k) && (kind == 0 || l.whole(k)) {
			l.raise(kind)
		}
	})
	k.Lane = ""
	if _, known, err := s.gate.Known(s.life, policy.As(k.Principal), k); err != nil || !known {
		return // nobody was ever shown it
	}
	for _, m := range methods {
		s.read(k, m, now)
	}
}

// tellLane hands a message to the listeners of a lane.
func (s *Surface) tellLane(a Agent, m mcp.Message) {
	s.listeners.each(func(l *listener) {
		if l.agent.Principal == a.Principal && l.agent.Lane == a.Lane {
			l.on(m)
		}
	})
}

// readyAfter returns what each of n has to call once; the last of them calls ready.
func readyAfter(n int, ready func()) func() {
	var left atomic.Int64
	left.Store(int64(n))
	return func() {
		if left.Add(-1) == 0 && ready != nil {
			ready()
		}
	}
}

// keepListening subscribes at a server, again and again when the connection breaks,
// until ctx ends. want.Ready is called once, after the first try at the latest.
func (s *Surface) keepListening(ctx context.Context, a Agent, k policy.Key, want Subscription, on func(mcp.Message)) {
	if want.Ready == nil {
		want.Ready = func() {}
	}
	want.Ready = sync.OnceFunc(want.Ready)
	follow := s.follows.add(a, k, want)
	defer s.follows.remove(follow)
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, time.Minute) {
		began := time.Now()
		err := follow.run(ctx, func(ctx context.Context) error { return s.gate.Listen(ctx, a.now().who, k, want, on) })
		want.Ready()
		if ctx.Err() != nil {
			return
		}
		s.opt.Log.Debug("a subscription ended", "server", k.Server, "error", err)
		if time.Since(began) > time.Minute {
			wait = time.Second
		}
		pause := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			pause.Stop()
		case <-pause.C:
		}
	}
}

// watch follows the events that change what is seen: lists, states, logins.
func (s *Surface) watch(sub *event.Subscription[event.Event]) {
	defer sub.Close()
	for e := range sub.All(s.life) {
		switch e := e.(type) {
		case event.ToolsChanged, event.ServerChanged:
			s.wake()
		case event.GrantChanged:
			if e.Change == event.GrantStored {
				k := s.normal(policy.Key{Principal: e.Principal, Server: e.Server, Account: e.Account})
				s.readings.forget(k.Server, k.Account)
				s.read(k, mcp.MethodToolsList, now) // so that subscribers hear of new tools
			}
			s.wake()
		}
	}
}
