package surface

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
	"github.com/usher-mcp/usher/surface/internal/result"
)

// direct shows everything of all servers side by side.
type direct struct{ endpoint }

const directCapabilities = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}`

// Info implements [View]. It is the same whatever servers there are.
func (d *direct) Info(context.Context, Agent) (Info, error) {
	return Info{
		Server: d.serverInfo(), Capabilities: []byte(directCapabilities), Public: true,
		Instructions: "Tools and prompts of several servers, named SERVER" + d.s.opt.Separator + "NAME.",
	}, nil
}

// Do implements [View].
func (d *direct) Do(ctx context.Context, a Agent, r mcp.Request) ([]byte, error) {
	a = d.agent(a)
	p, werr := r.ReadParams()
	if werr != nil {
		return nil, werr
	}
	switch r.Method {
	case mcp.MethodPing:
		return result.Empty(a.Version), nil
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList:
		return d.list(ctx, a, r.Method, p)
	case mcp.MethodToolsCall:
		return d.call(ctx, a, r, p.Name)
	case mcp.MethodPromptsGet:
		return d.prompt(ctx, a, r, p.Name)
	case mcp.MethodResourcesRead:
		return d.readResource(ctx, a, r, p.URI)
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		t, err := d.resolve(ctx, a, r.Method, p.URI)
		if err != nil {
			return nil, err
		}
		return d.s.subscribe(ctx, a, t, p.URI, r)
	case mcp.MethodComplete:
		return d.complete(ctx, a, r)
	case mcp.MethodSetLevel:
		return d.s.setLevel(ctx, a, r.Params)
	}
	return nil, mcp.Errorf(mcp.CodeMethodNotFound, "method %s is not offered here", r.Method)
}

// list answers from what is known; servers never seen before are asked first. It is
// one page, so every cursor is one we never gave.
func (d *direct) list(ctx context.Context, a Agent, method string, p mcp.Params) ([]byte, error) {
	if p.Cursor != nil {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "unknown cursor %.40s: the list has one page", p.Cursor)
	}
	snap := d.current(ctx, a, method)
	switch method {
	case mcp.MethodPromptsList:
		return snap.prompts.forAgent(a.Version), nil
	case mcp.MethodResourcesList:
		return snap.resources.forAgent(a.Version), nil
	case mcp.MethodTemplatesList:
		return snap.templates.forAgent(a.Version), nil
	}
	return snap.tools.forAgent(a.Version), nil
}

// current is the snapshot after servers that were never listed have been asked.
func (e *endpoint) current(ctx context.Context, a Agent, method string) *snapshot {
	snap := e.s.snapshot(ctx, a)
	for i := range snap.sources {
		if snap.sources[i].lacks(method) {
			e.s.learn(ctx, snap.sources, method)
			return e.s.snapshot(ctx, a)
		}
	}
	for i := range snap.sources {
		if src := &snap.sources[i]; src.doubtful(e.s.started) {
			e.s.read(src.key, method, refreshEvery)
		}
	}
	return snap
}

func (d *direct) call(ctx context.Context, a Agent, r mcp.Request, name string) ([]byte, error) {
	if (name == loginName || name == statusName) && d.s.gate.CanLogin() {
		return d.own(ctx, a, r, name), nil
	}
	snap := d.lookup(ctx, a, func(s *snapshot) bool { _, ok := s.tools.items[name]; return ok })
	t, ok := snap.tools.items[name]
	if !ok && d.s.askNamed(ctx, snap, mcp.MethodToolsList, name) {
		snap = d.s.snapshot(ctx, a)
		t, ok = snap.tools.items[name]
	}
	if !ok {
		t, ok = snap.blocked(d.s.names, name) // the gate refuses it, says why and records it
	}
	if !ok {
		d.s.missing(ctx, a, mcp.MethodToolsCall, name)
		if err := d.s.unread(snap, mcp.MethodToolsList, name); err != nil {
			return nil, err
		}
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "unknown tool: %s%s", name, didYouMean(name, keys(snap.tools.items)))
	}
	r.Params = jsonx.Set(r.Params, "name", jsonx.Quote(t.name))
	return d.s.forward(ctx, a, t.src.key, t.name, r)
}

// own answers a call of a tool that the view adds.
func (d *direct) own(ctx context.Context, a Agent, r mcp.Request, name string) []byte {
	args, _ := jsonx.Get(r.Params, "arguments")
	server := jsonx.GetText(args, "server")
	if name == statusName {
		text, failed := d.s.statusText(ctx, a, server)
		return result.Text(a.Version, text, failed)
	}
	return d.s.login(ctx, a, server, jsonx.GetText(args, "redirect_url"))
}

// missing records the use of a tool or prompt that is not listed because it is denied.
func (s *Surface) missing(ctx context.Context, a Agent, method, name string) {
	s.gate.Missing(ctx, a.who, method, func(server, account string) (string, bool) {
		own, ok := strings.CutPrefix(name, s.names.ShownPart(server, account))
		return own, ok && own != ""
	})
}

// refuse records that a caller asked for a server, "name" or "name@account", that is
// there and does not exist for it.
func (s *Surface) refuse(ctx context.Context, a Agent, name, method string) {
	server, account, _ := strings.Cut(name, "@")
	_ = s.gate.Enter(ctx, a.who, policy.Key{Server: server, Account: account}, method, "") // the agent learns only that it is unknown
}

func (d *direct) prompt(ctx context.Context, a Agent, r mcp.Request, name string) ([]byte, error) {
	t, err := d.findPrompt(ctx, a, r.Method, name)
	if err != nil {
		return nil, err
	}
	r.Params = jsonx.Set(r.Params, "name", jsonx.Quote(t.name))
	return d.s.forward(ctx, a, t.src.key, "", r)
}

func (d *direct) findPrompt(ctx context.Context, a Agent, method, name string) (target, error) {
	find := func(s *snapshot) bool { _, ok := s.prompts.items[name]; return ok }
	snap := d.s.recent(ctx, a)
	if !find(snap) {
		snap = d.current(ctx, a, mcp.MethodPromptsList)
	}
	if !find(snap) && d.s.askNamed(ctx, snap, mcp.MethodPromptsList, name) {
		snap = d.s.snapshot(ctx, a)
	}
	if !find(snap) {
		d.s.missing(ctx, a, method, name)
		if err := d.s.unread(snap, mcp.MethodPromptsList, name); err != nil {
			return target{}, err
		}
		return target{}, mcp.Errorf(mcp.CodeInvalidParams, "unknown prompt: %s%s", name, didYouMean(name, keys(snap.prompts.items)))
	}
	return snap.prompts.items[name], nil
}

func (d *direct) readResource(ctx context.Context, a Agent, r mcp.Request, uri string) ([]byte, error) {
	t, err := d.resolve(ctx, a, r.Method, uri)
	if err != nil {
		return nil, err
	}
	if t.name != uri {
		r.Params = jsonx.Set(r.Params, "uri", jsonx.Quote(t.name))
	}
	result, err := d.s.forward(ctx, a, t.src.key, "", r)
	if err != nil {
		return nil, err
	}
	return renameContents(result, t.name, uri), nil
}

// resolve finds the server of an address; lists that are not known yet are read
// first where the address is not in those that are. A refusal is recorded; method
// says what for.
func (d *direct) resolve(ctx context.Context, a Agent, method, uri string) (target, error) {
	snap := d.s.recent(ctx, a)
	if len(snap.uris[uri]) == 1 {
		return target{src: snap.uris[uri][0].src, name: uri}, nil
	}
	d.current(ctx, a, mcp.MethodResourcesList)
	snap = d.current(ctx, a, mcp.MethodTemplatesList)
	if l, _, ok := naming.SplitServer(uri); ok && (snap.by[l] == nil || !snap.by[l].Whole) {
		d.s.refuse(ctx, a, l, method)
	}
	t, werr := snap.resolve(a, uri)
	if werr != nil {
		return target{}, werr
	}
	return t, nil
}

// complete maps the name or address that is to be completed.
func (d *direct) complete(ctx context.Context, a Agent, r mcp.Request) ([]byte, error) {
	ref, ok := jsonx.Get(r.Params, "ref")
	if !ok {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params lack ref")
	}
	var t target
	var err error
	key := "name"
	if jsonx.GetText(ref, "type") == "ref/resource" {
		key = "uri"
		t, err = d.resolveTemplate(ctx, a, r.Method, jsonx.GetText(ref, "uri"))
	} else {
		t, err = d.findPrompt(ctx, a, r.Method, jsonx.GetText(ref, "name"))
	}
	if err != nil {
		return nil, err
	}
	r.Params = jsonx.Set(r.Params, "ref", jsonx.Set(ref, key, jsonx.Quote(t.name)))
	return d.s.forward(ctx, a, t.src.key, "", r)
}

func (d *direct) resolveTemplate(ctx context.Context, a Agent, method, uri string) (target, error) {
	snap := d.current(ctx, a, mcp.MethodTemplatesList)
	if t, ok := snap.templates.items[uri]; ok {
		return t, nil
	}
	return d.resolve(ctx, a, method, uri)
}

// Listen implements [View].
func (d *direct) Listen(ctx context.Context, a Agent, want Subscription, on func(mcp.Message)) error {
	a = d.agent(a)
	d.s.lanes.open(a)
	ready := readyAfter(1+len(want.URIs), want.Ready)
	l := &listener{
		agent: a, want: want, on: on, ready: ready,
		sums: func(ctx context.Context) lists3 {
			snap := d.s.snapshot(ctx, a.now())
			return lists3{snap.tools.sum, snap.prompts.sum, sum2(snap.resources.sum, snap.templates.sum)}
		},
		shows: func(k policy.Key) bool { return d.s.recent(ctx, a.now()).by[naming.Label(k.Server, k.Account)] != nil },
		shown: func(k policy.Key, uri string) string {
			snap := d.s.recent(ctx, a.now())
			if src := snap.by[naming.Label(k.Server, k.Account)]; src != nil {
				return snap.shownURI(src, uri)
			}
			return uri
		},
	}
	defer d.followAll(ctx, a, want.URIs, ready, on)()
	return d.s.run(ctx, l)
}

// followAll listens to the resources that were asked for, each at its server, and
// calls ready for each.
func (d *direct) followAll(ctx context.Context, a Agent, uris []string, ready func(), on func(mcp.Message)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, uri := range uris {
		wg.Go(func() {
			t, err := d.resolve(ctx, a, mcp.MethodSubscribe, uri)
			if err != nil {
				d.s.opt.Log.Debug("a subscription leads nowhere", "error", err)
				ready()
				return
			}
			d.s.keepListening(ctx, a, t.src.key, Subscription{URIs: []string{t.name}, Ready: ready}, func(m mcp.Message) {
				if m.Method == mcp.MethodNotifyUpdated {
					on(updated(m, uri))
				}
			})
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

func sum2(a, b [32]byte) [32]byte { return sha256.Sum256(append(a[:], b[:]...)) }

func keys(items map[string]target) []string { return slices.Sorted(maps.Keys(items)) }
