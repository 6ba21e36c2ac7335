package surface

import (
	"context"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
	"github.com/usher-mcp/usher/surface/internal/result"
)

// single shows one server as it is. Rules, pins and supervision apply; besides that
// every byte of params and results is the agent's and the server's own.
type single struct {
	endpoint
	server, account string
}

func (v *single) key(a Agent) policy.Key {
	return policy.Key{Principal: a.Principal, Server: v.server, Account: v.account}
}

// Info implements [View].
func (v *single) Info(ctx context.Context, a Agent) (Info, error) {
	a = v.agent(a)
	listing, known, err := v.s.gate.Known(ctx, a.who, v.key(a))
	if err == nil && (!known || listing.Capabilities == nil) {
		listing, err = v.s.gate.Tools(ctx, a.who, v.key(a))
		switch v.s.kindOf(err) {
		case KindUnknownServer, KindOff, KindDenied, KindCancelled:
		default:
			err = nil // down, or it wants a login: what it offers shows when it answers
		}
	}
	if err != nil {
		return Info{}, err
	}
	return v.describe(a, listing), nil
}

func (v *single) describe(a Agent, l policy.Listing) Info {
	info := Info{Server: l.Info, Capabilities: l.Capabilities, Instructions: l.Instructions, Version: l.Version}
	if info.Server == nil {
		info.Server = jsonx.Set(v.serverInfo(), "name", jsonx.Quote(naming.Label(v.server, v.account)))
	}
	if info.Capabilities == nil {
		info.Capabilities = []byte(directCapabilities)
	}
	if !a.who.Scope.Whole(v.server, v.account) {
		info.Capabilities = onlyTools(info.Capabilities)
	}
	return info
}

// kindOf is the kind of problem that err is; none for nil.
func (s *Surface) kindOf(err error) Kind {
	if err == nil {
		return KindOther
	}
	return s.Explain(err).Kind
}

// onlyTools are the capabilities of a server for a caller that may use single tools.
func onlyTools(capabilities []byte) []byte {
	tools, ok := jsonx.Get(capabilities, "tools")
	if !ok {
		return []byte("{}")
	}
	return jsonx.Set(nil, "tools", tools)
}

// Do implements [View].
func (v *single) Do(ctx context.Context, a Agent, r mcp.Request) ([]byte, error) {
	a = v.agent(a)
	p, werr := r.ReadParams()
	if werr != nil {
		return nil, werr
	}
	switch r.Method {
	case mcp.MethodPing:
		return result.Empty(a.Version), v.s.gate.Enter(ctx, a.who, v.key(a), r.Method, "")
	case mcp.MethodInitialize, mcp.MethodDiscover, mcp.MethodListen:
		return nil, mcp.Errorf(mcp.CodeMethodNotFound, "%s is not passed on", r.Method) // Info and Listen are for these
	case mcp.MethodSetLevel:
		return v.setLevel(ctx, a, r)
	case mcp.MethodToolsCall:
		return v.s.forward(ctx, a, v.key(a), p.Name, r)
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		src := &source{key: v.key(a)}
		return v.s.subscribe(ctx, a, target{src: src, name: p.URI}, p.URI, r)
	}
	return v.s.forward(ctx, a, v.key(a), "", r)
}

// setLevel asks an older server itself, so that its own answer comes back; for a
// modern one the level is remembered.
func (v *single) setLevel(ctx context.Context, a Agent, r mcp.Request) ([]byte, error) {
	result, err := v.s.setLevel(ctx, a, r.Params)
	if err != nil || a.Lane == "" {
		return result, err
	}
	rt, err := v.s.route(ctx, a, v.key(a), &r) // tells the level
	if err != nil {
		return nil, err
	}
	rt.done()
	return result, nil
}

// Listen implements [View]. A modern agent asked for it in so many words: the
// connection is held for it. The stream of an older session is no reason to start a
// server.
func (v *single) Listen(ctx context.Context, a Agent, want Subscription, on func(mcp.Message)) error {
	a = v.agent(a)
	method := mcp.MethodListen
	if len(want.URIs) > 0 {
		method = mcp.MethodSubscribe
	}
	if err := v.s.gate.Enter(ctx, a.who, v.key(a), method, ""); err != nil {
		return err
	}
	if !a.who.Scope.Whole(v.server, v.account) {
		want.Prompts, want.Resources = false, false
	}
	v.s.lanes.open(a)
	l := &listener{
		agent: a, want: want, on: on, ready: readyAfter(1, want.Ready),
		shows: func(k policy.Key) bool { return k.Server == v.server && k.Account == v.account },
		shown: func(_ policy.Key, uri string) string { return uri },
	}
	if len(want.URIs) > 0 || mcp.Stateless(a.Version) && (want.Tools || want.Prompts || want.Resources) {
		l.ready = readyAfter(2, want.Ready)
		defer v.hold(ctx, a, l)()
	}
	return v.s.run(ctx, l)
}

// hold listens at the server itself.
func (v *single) hold(ctx context.Context, a Agent, l *listener) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		want := l.want
		want.Ready = l.ready
		v.s.keepListening(ctx, a, v.key(a), want, func(m mcp.Message) {
			switch {
			case m.Method == mcp.MethodNotifyUpdated:
				l.on(updated(m, jsonx.GetText(m.Params, "uri")))
			case strings.HasSuffix(m.Method, "/list_changed"):
				v.s.listChanged(v.key(a), m.Method)
			}
		})
	}()
	return func() {
		cancel()
		<-done
	}
}
