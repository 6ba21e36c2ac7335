package policy

import (
	"bytes"
	linked "container/list"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// Bounds of the cache.
const (
	maxPerTool   = 64             // entries of one (server, method, tool)
	keepStale    = 24 * time.Hour // how long an outdated list can stand in
	sweepEvery   = time.Minute    // what has expired is looked for then, at the next entry
	entryCost    = 256            // bytes of bookkeeping, about
	DefaultCache = 32 << 20       // bytes of all results together
)

// cacheKey is what must be equal for one result to answer two requests. An entry
// that servers declared public has the zero who.
type cacheKey struct {
	topic
	who  identity
	sum  [32]byte // of the canonical params
	mark uint64   // generation: what came before an invalidation is not found
}

// topic is what at most 64 entries are kept of.
type topic struct{ server, method, tool string }

// identity is the authorization context of a request.
type identity struct{ principal, account string }

// cached is one result. The bytes are shared by all who get it.
type cached struct {
	raw    []byte
	until  time.Time // fresh before
	public bool

	// What follows is the cache's own.
	key         cacheKey
	gone        time.Time // not even good to stand in from then on
	age, recent *linked.Element
}

func (e *cached) cost() int64 { return int64(len(e.raw) + entryCost) }

// CacheStats are counts since the start, but for Entries and Bytes, which are now.
type CacheStats struct {
	Hits      int64 // answered by an entry
	Misses    int64 // looked up and not found, or outdated
	Collapsed int64 // answered by somebody else's identical call
	Stale     int64 // answered by an outdated list, because the server failed
	Entries   int64
	Bytes     int64
}

// cache keeps results for as long as their servers said. When there are too many of
// a tool the oldest go, and when they are too large together those that nobody has
// asked for in the longest time. Nothing is allocated before the first is kept.
type cache struct {
	maxBytes int64
	lists    atomic.Bool // before there was an entry nobody has to look for one,
	calls    atomic.Bool // and few results of tools are ever kept

	hits, misses, collapsed, stale atomic.Int64

	mu     sync.Mutex // guards what follows
	byKey  map[cacheKey]*cached
	topics map[topic]*linked.List // entries, oldest first; none is empty
	recent linked.List            // all entries, the one asked for last at the end
	bytes  int64
	swept  time.Time
	closed bool
}

func newCache(maxBytes int64) *cache {
	if maxBytes <= 0 {
		maxBytes = DefaultCache
	}
	return &cache{maxBytes: maxBytes}
}

// get returns the entry, and whether it is fresh. An entry that is not may still
// stand in for a list that cannot be read.
func (c *cache) get(k cacheKey) (e *cached, fresh bool) {
	if !c.filled(k.method).Load() {
		return nil, false
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e = c.byKey[k]
	if e == nil || !now.Before(e.gone) {
		return nil, false
	}
	c.recent.MoveToBack(e.recent)
	return e, now.Before(e.until)
}

func (c *cache) filled(method string) *atomic.Bool {
	if method == mcp.MethodToolsCall {
		return &c.calls
	}
	return &c.lists
}

// put keeps a result for ttl from now on. An expired list is kept for longer, to
// stand in.
func (c *cache) put(k cacheKey, raw []byte, f mcp.Freshness) {
	now := time.Now()
	e := &cached{raw: raw, until: now.Add(f.TTL), public: f.Public, key: k}
	if f.TTL <= 0 || e.cost() > c.maxBytes/4 {
		return
	}
	e.raw = bytes.Clone(raw)
	e.gone = e.until
	if isList(k.method) {
		e.gone = e.gone.Add(keepStale)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.add(e)
	c.trim(e.key.topic, now)
}

// add needs mu, as do all that follow up to drop.
func (c *cache) add(e *cached) {
	if old := c.byKey[e.key]; old != nil {
		c.remove(old)
	}
	if c.byKey == nil {
		c.byKey, c.topics = map[cacheKey]*cached{}, map[topic]*linked.List{}
	}
	c.filled(e.key.method).Store(true)
	ages := c.topics[e.key.topic]
	if ages == nil {
		ages = linked.New()
		c.topics[e.key.topic] = ages
	}
	c.byKey[e.key] = e
	e.age, e.recent = ages.PushBack(e), c.recent.PushBack(e)
	c.bytes += e.cost()
}

func (c *cache) remove(e *cached) {
	ages := c.topics[e.key.topic]
	if ages.Remove(e.age); ages.Len() == 0 {
		delete(c.topics, e.key.topic)
	}
	c.recent.Remove(e.recent)
	delete(c.byKey, e.key)
	c.bytes -= e.cost()
}

// trim brings the cache back to its bounds after an entry of t came.
func (c *cache) trim(t topic, now time.Time) {
	if now.Sub(c.swept) >= sweepEvery {
		c.sweep(&c.recent, now)
		c.swept = now
	}
	ages := c.topics[t]
	if ages.Len() > maxPerTool {
		c.sweep(ages, now)
	}
	for ages.Len() > maxPerTool {
		c.remove(ages.Front().Value.(*cached))
	}
	for c.bytes > c.maxBytes {
		c.remove(c.recent.Front().Value.(*cached))
	}
}

// sweep removes the entries of a list that nobody can use any more.
func (c *cache) sweep(l *linked.List, now time.Time) {
	for at := l.Front(); at != nil; {
		e := at.Value.(*cached)
		at = at.Next()
		if !now.Before(e.gone) {
			c.remove(e)
		}
	}
}

// drop removes all entries of a server.
func (c *cache) drop(server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for t, ages := range c.topics {
		for t.server == server && ages.Len() > 0 {
			c.remove(ages.Front().Value.(*cached))
		}
	}
}

// entries counts the living entries of a server.
func (c *cache) entries(server string) int {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for t, ages := range c.topics {
		if t.server == server {
			c.sweep(ages, now)
			n += ages.Len()
		}
	}
	return n
}

func (c *cache) stats() CacheStats {
	s := CacheStats{Hits: c.hits.Load(), Misses: c.misses.Load(), Collapsed: c.collapsed.Load(), Stale: c.stale.Load()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(&c.recent, time.Now())
	s.Entries, s.Bytes = int64(len(c.byKey)), c.bytes
	return s
}

func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.byKey, c.topics, c.bytes = nil, nil, 0
	c.recent.Init()
}

func isList(method string) bool {
	switch method {
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList:
		return true
	}
	return false
}

// cacheable reports whether the specification lets results of method be kept. Of
// tools/call only those are that say so themselves.
func cacheable(method string) bool {
	return isList(method) || method == mcp.MethodDiscover || method == mcp.MethodResourcesRead || method == mcp.MethodToolsCall
}

// mayDeclare looks for "ttlMs" anywhere in a result. It goes from M to M, since that
// is rare in results, and so reads them at the speed of memory.
func mayDeclare(result []byte) bool {
	const before, after = `"ttl`, `Ms"`
	for at := 0; ; at++ {
		i := bytes.IndexByte(result[at:], 'M')
		if i < 0 {
			return false
		}
		at += i
		if at >= len(before) && string(result[at-len(before):at]) == before && bytes.HasPrefix(result[at:], []byte(after)) {
			return true
		}
	}
}

// freshness says how long a result may be kept: not at all when it does not say
// so, is an error, is no complete answer, or says something twice.
func freshness(result []byte) mcp.Freshness {
	if !mayDeclare(result) {
		return mcp.Freshness{}
	}
	f := mcp.ReadFreshness(result)
	if f.TTL <= 0 || mcp.ResultType(result) != mcp.ResultComplete {
		return mcp.Freshness{}
	}
	if failed, ok := jsonx.Get(result, "isError"); ok && string(failed) != "false" {
		return mcp.Freshness{}
	}
	if _, dup := jsonx.Duplicate(result); dup {
		return mcp.Freshness{}
	}
	return f
}
