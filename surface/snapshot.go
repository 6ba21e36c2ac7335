package surface

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
	"github.com/usher-mcp/usher/surface/internal/result"
	"github.com/usher-mcp/usher/surface/search"
)

// snapshot is what one principal sees through one selection, prepared: lists as
// bytes, names resolved. It never changes; when what is known of a server changes,
// a new one is made.
type snapshot struct {
	sources []source
	by      map[string]*source // by label

	tools, prompts, resources, templates list

	uris      map[string][]target // by the server's own address
	patterns  []pattern           // templates of all servers
	index     func() *search.Index
	toolNames map[string][]string // by label, sorted
}

// target is where a shown name leads.
type target struct {
	src  *source
	name string // the name or address at the server
	def  []byte // as the server sent it
}

type pattern struct {
	naming.Template
	target
}

// list is one prepared list.
type list struct {
	items   map[string]target // by shown name
	whole   []byte            // for agents of the older era
	modern  []byte            // for modern ones, when it may not be kept
	sum     [32]byte          // of the entries
	expires time.Time         // zero: it may not be kept
	public  bool
	fresh   *atomic.Pointer[rendered] // for modern ones, while it may be kept
}

// rendered is a list with the seconds for which it may still be kept. Its bytes stay
// the same for a second, so that nobody has to look through them again.
type rendered struct {
	left  time.Duration
	bytes []byte
}

// snapshotKey says whose view it is.
type snapshotKey struct{ principal, scope string }

// maxSnapshots bounds how many are kept.
const maxSnapshots = 256

// snapshots keeps them.
type snapshots struct {
	mu  sync.RWMutex // guards all
	all map[snapshotKey]*snapshot
}

func (c *snapshots) get(k snapshotKey) *snapshot {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.all[k]
}

func (c *snapshots) put(k snapshotKey, snap *snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[snapshotKey]*snapshot{}
	}
	if _, ok := c.all[k]; !ok && len(c.all) >= maxSnapshots {
		for old := range c.all { // any: it is made again when it is asked for
			delete(c.all, old)
			break
		}
	}
	c.all[k] = snap
}

// newSnapshot prepares everything but the search index, which is made when it is
// first used.
func newSnapshot(sources []source, narrow bool, n naming.Scheme, login bool) *snapshot {
	snap := &snapshot{sources: sources, by: map[string]*source{}, uris: map[string][]target{}, toolNames: map[string][]string{}}
	for i := range snap.sources {
		snap.by[snap.sources[i].label] = &snap.sources[i]
	}
	snap.addTools(narrow, n, login)
	snap.addPrompts(n)
	snap.addResources()
	snap.addTemplates()
	snap.index = sync.OnceValue(snap.newIndex)
	return snap
}

// entry is one definition under the name it is shown by.
type entry struct {
	shown string
	def   []byte
	target
}

// named orders entries of one server by name and leaves out those that come twice:
// only the first could be used.
func named(entries []entry) []entry {
	slices.SortStableFunc(entries, func(a, b entry) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return slices.CompactFunc(entries, func(a, b entry) bool { return a.name == b.name })
}

func (snap *snapshot) addTools(narrow bool, n naming.Scheme, login bool) {
	var all []entry
	f := freshness{public: !narrow}
	for i := range snap.sources {
		src := &snap.sources[i]
		f.add(src)
		var own []entry
		for _, t := range src.listing.Tools {
			if t.Blocked {
				continue
			}
			own = append(own, entry{def: t.Definition, target: target{src, t.Name, t.Definition}})
		}
		for _, e := range named(own) {
			e.shown = n.Shown(src.Name, src.Account, e.name)
			e.def = jsonx.Set(e.def, "name", jsonx.Quote(e.shown))
			snap.toolNames[src.label] = append(snap.toolNames[src.label], e.name)
			all = append(all, e)
		}
	}
	var first []byte
	if login {
		first = slices.Concat(statusTool, []byte(","), loginTool)
	}
	snap.tools = newList("tools", first, all, f)
}

func (snap *snapshot) addPrompts(n naming.Scheme) {
	var all []entry
	for src := range snap.whole() {
		var own []entry
		for _, def := range src.listing.Prompts {
			if name := jsonx.GetText(def, "name"); name != "" {
				own = append(own, entry{def: def, target: target{src, name, def}})
			}
		}
		for _, e := range named(own) {
			e.shown = n.Shown(src.Name, src.Account, e.name)
			e.def = jsonx.Set(e.def, "name", jsonx.Quote(e.shown))
			all = append(all, e)
		}
	}
	snap.prompts = newList("prompts", nil, all, freshness{})
}

// whole yields the sources of which more than tools exist for the agent.
func (snap *snapshot) whole() func(func(*source) bool) {
	return func(yield func(*source) bool) {
		for i := range snap.sources {
			if src := &snap.sources[i]; src.Whole && !yield(src) {
				return
			}
		}
	}
}

// freshness gathers for how long and whom a list of many servers may be kept.
type freshness struct {
	public  bool
	expires time.Time
	never   bool
	any     bool
}

func (f *freshness) add(src *source) {
	if src.Off || src.err != nil {
		return
	}
	f.any = true
	f.public = f.public && src.known && src.listing.Public && src.Account == ""
	if !src.known || src.listing.TTL <= 0 {
		f.never = true
		return
	}
	if end := src.listing.At.Add(src.listing.TTL); f.expires.IsZero() || end.Before(f.expires) {
		f.expires = end
	}
}

// newList renders entries. first is a definition of our own, nil for none.
func newList(key string, first []byte, entries []entry, f freshness) list {
	size := len(first) + 64
	for _, e := range entries {
		size += len(e.def) + 1
	}
	l := list{items: make(map[string]target, len(entries)), public: f.public && f.any, fresh: new(atomic.Pointer[rendered])}
	if !f.never {
		l.expires = f.expires
	}
	out := append(make([]byte, 0, size), `{"`+key+`":[`...)
	out = append(out, first...)
	for _, e := range entries {
		if _, taken := l.items[e.shown]; taken {
			continue // two hashes met: who came first keeps the name
		}
		l.items[e.shown] = e.target
		if out[len(out)-1] != '[' {
			out = append(out, ',')
		}
		out = append(out, e.def...)
	}
	l.whole = append(out, `]}`...)
	l.sum = sha256.Sum256(l.whole)
	l.modern = l.render(0)
	return l
}

// forAgent is the list in the form of the agent's era. The bytes are shared.
func (l *list) forAgent(version string) []byte {
	if !mcp.Stateless(version) {
		return l.whole
	}
	if l.expires.IsZero() {
		return l.modern
	}
	left := time.Until(l.expires).Truncate(time.Second)
	if left <= 0 {
		return l.modern
	}
	if r := l.fresh.Load(); r != nil && r.left == left {
		return r.bytes
	}
	r := &rendered{left, l.render(left)}
	l.fresh.Store(r)
	return r.bytes
}

func (l *list) render(ttl time.Duration) []byte {
	return result.AppendFresh(bytes.Clone(l.whole), ttl, l.public)
}

// newIndex is the search over all tools that are shown.
func (snap *snapshot) newIndex() *search.Index {
	docs := make([]search.Document, 0, len(snap.tools.items))
	for _, t := range snap.tools.items {
		docs = append(docs, search.Document{Server: t.src.label, Tool: t.name, Definition: t.def})
	}
	slices.SortFunc(docs, func(a, b search.Document) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool))
	})
	return search.NewIndex(docs)
}

// snapshot returns what a sees now, made again only when something has changed.
func (s *Surface) snapshot(ctx context.Context, a Agent) *snapshot {
	k := a.snapshotKey()
	sources := s.sources(ctx, a)
	old := s.snaps.get(k)
	if old != nil && slices.EqualFunc(old.sources, sources, func(x, y source) bool { return x.sameAs(&y) }) {
		return old
	}
	snap := newSnapshot(sources, a.who.Scope.Narrow(), s.names, s.gate.CanLogin())
	s.snaps.put(k, snap)
	return snap
}

// recent is the last snapshot, perhaps outdated: what it leads to is checked again
// by the gate.
func (s *Surface) recent(ctx context.Context, a Agent) *snapshot {
	if snap := s.snaps.get(a.snapshotKey()); snap != nil {
		return snap
	}
	return s.snapshot(ctx, a)
}

func (a *Agent) snapshotKey() snapshotKey { return snapshotKey{a.Principal, a.who.Scope.Key()} }

// hasTool reports whether a tool of a server is shown.
func (snap *snapshot) hasTool(src *source, name string) bool {
	_, ok := slices.BinarySearch(snap.toolNames[src.label], name)
	return ok
}

// blocked finds a tool that is not shown because it is not what was pinned.
func (snap *snapshot) blocked(n naming.Scheme, shown string) (target, bool) {
	for i := range snap.sources {
		src := &snap.sources[i]
		if !strings.HasPrefix(shown, src.Name) {
			continue
		}
		for _, t := range src.listing.Tools {
			if t.Blocked && n.Shown(src.Name, src.Account, t.Name) == shown {
				return target{src: src, name: t.Name}, true
			}
		}
	}
	return target{}, false
}

// tool finds a tool of a server by the name it is listed under.
func (src *source) tool(name string) (policy.Tool, bool) {
	for _, t := range src.listing.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return policy.Tool{}, false
}
