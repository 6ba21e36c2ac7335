package host

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	listpool "github.com/usher-mcp/usher/host/internal/lists"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// Catalog is what a server offers, as last known. All definitions are raw, to the
// byte as the server sent them.
type Catalog struct {
	Tools, Prompts, Resources, Templates [][]byte

	Version      string // protocol revision
	Info         []byte // name and version in the server's words, nil when unknown
	Capabilities []byte
	Instructions string

	At     time.Time     // when Tools were read
	TTL    time.Duration // how long they may be kept; 0: the server did not say
	Public bool          // they may be shown to everybody
	Stale  bool          // they may have changed since
	// Problem is why stale tools could not be read again, nil when nobody tried.
	// It is not kept.
	Problem error
}

// maxQuiet is how long a list is believed to be unchanged because the server
// promised to tell: a notification may have been lost.
const maxQuiet = 10 * time.Minute

// lists says of which lists something holds.
type lists struct{ tools, prompts, resources bool }

func (l lists) of(method string) bool {
	switch method {
	case mcp.MethodToolsList:
		return l.tools
	case mcp.MethodPromptsList:
		return l.prompts
	}
	return l.resources
}

// catalog is the last known lists of a unit.
type catalog struct {
	pool    *listpool.Pool[*catalog]
	owner   string     // the principal
	mu      sync.Mutex // guards what follows
	loaded  bool       // Memory has been asked
	closed  bool       // nothing is counted in the pool any more
	shown   *Catalog   // what view made last, nil when something changed since
	info    upstream.ServerInfo
	known   map[string]*listing // by method; none of them changes
	changes map[string]int      // how often the server said that a list changed
	kept    time.Time           // when Memory was told of it as it is, or zero
}

// keepAgain is how long Memory is not told again of what is still the same. Lists may
// be good for a minute, and with many servers nothing else would be written.
const keepAgain = 10 * time.Minute

// listing is one list and where it came from.
type listing struct {
	upstream.List
	from    *live
	stale   bool
	problem error
}

// connected takes over what a server says about itself and teaches the connection
// the tools it may call, so that it need not list them first.
func (c *catalog) connected(l *live) {
	info := l.conn.Info()
	l.hears = lists{tools: announces(info, "tools"), prompts: announces(info, "prompts"), resources: announces(info, "resources")}
	c.mu.Lock()
	c.info, c.shown, c.kept = info, nil, time.Time{}
	tools := c.list(mcp.MethodToolsList).Items
	c.mu.Unlock()
	if tools != nil {
		l.conn.LearnTools(tools)
	}
}

func announces(info upstream.ServerInfo, what string) bool {
	v, _ := jsonx.Path(info.Capabilities, what, "listChanged")
	return string(v) == "true"
}

// items returns one of the lists, nil when it is not known.
func (c *Catalog) items(method string) [][]byte {
	switch method {
	case mcp.MethodToolsList:
		return c.Tools
	case mcp.MethodPromptsList:
		return c.Prompts
	case mcp.MethodResourcesList:
		return c.Resources
	}
	return c.Templates
}

// take puts a list that was just read in the place of one that is not known.
func (c *Catalog) take(method string, read *upstream.List) {
	switch method {
	case mcp.MethodToolsList:
		c.Tools, c.At, c.TTL, c.Public = read.Items, read.Received, read.TTL, read.Public
	case mcp.MethodPromptsList:
		c.Prompts = read.Items
	case mcp.MethodResourcesList:
		c.Resources = read.Items
	default:
		c.Templates = read.Items
	}
}

// load takes in what was remembered, unless something newer is known.
func (c *catalog) load(old Catalog, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded {
		return
	}
	c.loaded = true
	if !ok {
		return
	}
	c.shown = nil
	c.info = upstream.ServerInfo{Version: old.Version, Info: old.Info, Capabilities: old.Capabilities, Instructions: old.Instructions}
	for method, items := range map[string][][]byte{
		mcp.MethodToolsList: old.Tools, mcp.MethodPromptsList: old.Prompts,
		mcp.MethodResourcesList: old.Resources, mcp.MethodTemplatesList: old.Templates,
	} {
		if items == nil {
			continue
		}
		l := listing{List: upstream.List{Items: items, Received: old.At}}
		if method == mcp.MethodToolsList {
			l.TTL, l.Public, l.stale = old.TTL, old.Public, old.Stale
		}
		c.put(method, l)
	}
}

func newLists() *listpool.Pool[*catalog] {
	return listpool.New(func(c *catalog) string { return c.owner })
}

// drop forgets all lists, as if they had never been read. One that was stored since the
// pool chose this catalog is given up there too.
func (c *catalog) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pool.Forget(c)
	c.known, c.shown, c.kept = nil, nil, time.Time{}
}

// close gives up what the catalog holds in the pool; what is known stays readable.
func (c *catalog) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if c.pool != nil {
		c.pool.Forget(c)
	}
}

// limit has the catalogs of other connections drop their lists where the server has
// listed too much in all. It must be called without mu after put.
func (c *catalog) limit() {
	if c.pool == nil {
		return
	}
	for _, other := range c.pool.Overdue(c) {
		other.drop()
	}
}

// put needs mu.
func (c *catalog) put(method string, l listing) {
	if c.pool != nil && !c.closed {
		l.Items = c.pool.Share(c, method, l.Items)
	}
	if c.known == nil {
		c.known = map[string]*listing{}
	}
	c.set(method, l)
}

// set needs mu.
func (c *catalog) set(method string, l listing) {
	c.known[method] = &l
	c.shown = nil
}

// list is one that was never read when its Items are nil. It needs mu.
func (c *catalog) list(method string) listing {
	if l := c.known[method]; l != nil {
		return *l
	}
	return listing{}
}

// changed marks a list as out of date.
func (c *catalog) changed(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == nil {
		c.changes = map[string]int{}
	}
	c.changes[method]++
	if known := c.known[method]; known != nil {
		l := *known
		l.stale = true
		c.set(method, l)
	}
}

// distrust marks lists as out of date that were read, or asked for, before the server
// began to announce their changes.
func (c *catalog) distrust(heard lists) {
	for _, method := range [...]string{mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList} {
		if heard.of(method) {
			c.changed(method)
		}
	}
}

// expire marks everything as out of date.
func (c *catalog) expire() {
	c.mu.Lock()
	methods := slices.Collect(maps.Keys(c.known))
	c.mu.Unlock()
	for _, m := range methods {
		c.changed(m)
	}
}

// changeCount is to be read before a list is fetched, see store.
func (c *catalog) changeCount(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes[method]
}

// store keeps a list that was fetched when changeCount was seen, and reports
// whether it is another one than before.
func (c *catalog) store(method string, list upstream.List, from *live, seen int) (differs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.known[method]
	c.put(method, listing{List: list, from: from, stale: c.changes[method] != seen})
	differs = before == nil || !slices.EqualFunc(before.Items, list.Items, bytes.Equal)
	if differs || before.TTL != list.TTL || before.Public != list.Public {
		c.kept = time.Time{}
	}
	return differs
}

// toKeep reports whether Memory is to be told, and takes for granted that it is.
func (c *catalog) toKeep() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.kept.IsZero() && now.Sub(c.kept) < keepAgain {
		return false
	}
	c.kept = now
	return true
}

// failed notes that a list could not be read again, and reports whether there is
// an older one to show.
func (c *catalog) failed(method string, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.known[method]
	if known == nil {
		return false
	}
	l := *known
	l.stale, l.problem = true, err
	c.set(method, l)
	return true
}

// fresh reports whether a list need not be asked for again; now is the connection
// in use, nil when there is none.
func (c *catalog) fresh(method string, now *live) bool {
	c.mu.Lock()
	l := c.list(method)
	c.mu.Unlock()
	age := time.Since(l.Received)
	switch {
	case l.Items == nil, l.stale:
		return false
	case l.TTL > 0 && age < l.TTL:
		return true
	case now == nil || l.from != now || age > maxQuiet:
		return false
	}
	return now.hears.of(method) && (!mcp.Stateless(now.conn.Version()) || now.listening.Load())
}

// view is the catalog as a whole, and whether the tools are known. Every call asks for
// it, so it is put together only when something has changed.
func (c *catalog) view() (out Catalog, known bool) {
	c.mu.Lock()
	if c.shown == nil {
		c.shown = c.show()
	}
	out = *c.shown
	c.mu.Unlock()
	out.Stale = out.Stale || out.TTL > 0 && time.Since(out.At) >= out.TTL
	return out, out.Tools != nil
}

// show needs mu.
func (c *catalog) show() *Catalog {
	tools := c.list(mcp.MethodToolsList)
	return &Catalog{
		Tools: tools.Items, Prompts: c.list(mcp.MethodPromptsList).Items,
		Resources: c.list(mcp.MethodResourcesList).Items, Templates: c.list(mcp.MethodTemplatesList).Items,
		Version: c.info.Version, Info: c.info.Info, Capabilities: c.info.Capabilities, Instructions: c.info.Instructions,
		At: tools.Received, TTL: tools.TTL, Public: tools.Public, Stale: tools.stale, Problem: tools.problem,
	}
}

// tool returns the definition of a tool, and whether the tools are known at all.
func (c *catalog) tool(name string) (def []byte, known bool) {
	c.mu.Lock()
	tools := c.list(mcp.MethodToolsList)
	c.mu.Unlock()
	for _, def := range tools.Items {
		if jsonx.GetText(def, "name") == name {
			return def, true
		}
	}
	return nil, tools.Items != nil
}

func (c *catalog) toolNames() []string {
	c.mu.Lock()
	tools := c.list(mcp.MethodToolsList)
	c.mu.Unlock()
	names := make([]string, len(tools.Items))
	for i, def := range tools.Items {
		names[i] = jsonx.GetText(def, "name")
	}
	return names
}

// recall asks the Memory for an older catalog, once.
func (u *unit) recall(ctx context.Context) {
	u.catalog.mu.Lock()
	loaded := u.catalog.loaded
	u.catalog.mu.Unlock()
	if loaded {
		return
	}
	old, ok := u.h.opt.Memory.Tools(ctx, u.key, u.digest)
	u.catalog.load(old, ok)
	u.catalog.limit()
}
