package surface

import (
	"context"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/result"
)

// setLevel remembers the log level that an agent wants and tells it to the servers
// of its lane: to older ones now or when they are first used, to modern ones with
// every request.
func (s *Surface) setLevel(ctx context.Context, a Agent, params []byte) ([]byte, error) {
	level, ok := jsonx.Get(params, "level")
	text, isText := jsonx.Text(level)
	if !ok || !isText || !logLevel(text) {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "level must be one of debug, info, notice, warning, error, critical, alert, emergency")
	}
	l := s.lanes.open(a)
	if l == nil {
		return result.Empty(a.Version), nil // it has no session for which that could hold
	}
	l.mu.Lock()
	l.level, l.own = append([]byte(nil), level...), true
	clear(l.told)
	l.mu.Unlock()
	for _, k := range l.olderOnes() {
		s.tellLevel(ctx, l, k)
	}
	return result.Empty(a.Version), nil
}

// wantedLevel is what a modern server is to log for the session. In the older era a
// session that asked for no level gets what the server finds worth telling.
func (l *lane) wantedLevel() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.level == nil {
		return []byte(`"info"`)
	}
	return l.level
}

func logLevel(text string) bool {
	switch text {
	case "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency":
		return true
	}
	return false
}

// tellLevel tells a server of the older era which messages the agent wants, once.
func (s *Surface) tellLevel(ctx context.Context, l *lane, k policy.Key) {
	l.mu.Lock()
	level := l.level
	told := level == nil || l.told[k]
	l.told[k] = true
	l.mu.Unlock()
	if told {
		return
	}
	var q policy.Request
	q.Method, q.Params = mcp.MethodSetLevel, jsonx.Set(nil, "level", level)
	// A server without logging refuses; the request it is for matters more.
	_, _ = s.gate.Do(ctx, l.agent.who, k, q)
}

// subscribe and its opposite are requests of the older era. For a server of that era
// they go to the lane's own connection; of a modern one the surface listens itself.
func (s *Surface) subscribe(ctx context.Context, a Agent, t target, shown string, r mcp.Request) ([]byte, error) {
	if err := s.gate.Enter(ctx, a.who, t.src.key, r.Method, ""); err != nil {
		return nil, s.asAnswer(err)
	}
	l := s.lanes.open(a)
	if l != nil {
		l.claim()
	}
	rt, err := s.route(ctx, a, t.src.key, &r)
	if err != nil {
		return nil, err
	}
	defer rt.done()
	if !mcp.Stateless(rt.version) {
		if t.name != shown {
			r.Params = jsonx.Set(r.Params, "uri", jsonx.Quote(t.name))
		}
		res, err := s.pass(ctx, a, rt.key, "", &r)
		if err == nil && l != nil {
			l.note(subscription{rt.key, t.name}, shown, r.Method == mcp.MethodSubscribe)
		}
		return res.Raw, err
	}
	if l == nil {
		return nil, mcp.Errorf(mcp.CodeMethodNotFound, "%s needs a session; use %s", r.Method, mcp.MethodListen)
	}
	l.mu.Lock()
	cancel, subscribed := l.subs[shown]
	if r.Method == mcp.MethodUnsubscribe {
		delete(l.subs, shown)
		if subscribed {
			cancel()
		}
	}
	l.mu.Unlock()
	if r.Method == mcp.MethodSubscribe && !subscribed {
		s.follow(l, rt.key, t.name, shown)
	}
	return result.Empty(a.Version), nil
}

// note remembers what an older server was told to send updates of.
func (l *lane) note(sub subscription, shown string, on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if on {
		l.subs[shown], l.asked[sub] = func() {}, true
	} else {
		delete(l.subs, shown)
		delete(l.asked, sub)
	}
}

func (l *lane) subscribed(shown string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subs[shown] != nil
}

// follow hears of updates of one resource until the lane ends or unsubscribes.
func (s *Surface) follow(l *lane, k policy.Key, own, shown string) {
	ctx, cancel := context.WithCancel(s.life)
	l.mu.Lock()
	l.subs[shown] = cancel
	l.mu.Unlock()
	s.spawn(func() {
		defer cancel()
		s.keepListening(ctx, l.agent, k, Subscription{URIs: []string{own}}, func(m mcp.Message) {
			if m.Method == mcp.MethodNotifyUpdated {
				s.tellLane(l.agent, updated(m, shown))
			}
		})
	})
}

// updated is the notification that a resource changed, under the agent's address
// for it and without the mark of our own subscription.
func updated(m mcp.Message, shown string) mcp.Message {
	params := wire.EditMeta(m.Params, jsonx.Edit{Key: mcp.MetaSubscription})
	if meta, ok := jsonx.Get(params, "_meta"); ok && string(meta) == "{}" {
		params = jsonx.Delete(params, "_meta")
	}
	if jsonx.GetText(params, "uri") != shown {
		params = jsonx.Set(params, "uri", jsonx.Quote(shown))
	}
	return notification(m.Method, params)
}

func notification(method string, params []byte) mcp.Message {
	return mcp.Message{Raw: mcp.AppendNotification(nil, method, params), Method: method, Params: params}
}
