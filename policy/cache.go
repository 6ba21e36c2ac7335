package policy

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
)

// Bounds of the cache.
const (
	maxPerTool   = 64             // entries of one (server, method, tool)
	keepStale    = 24 * time.Hour // how long an outdated list can stand in
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
	keep   time.Duration
	public bool
}

// CacheStats are counts since the start, but for Entries and Bytes, which are now.
type CacheStats struct {
	Hits      int64 // answered by an entry
	Misses    int64 // looked up and not found, or outdated
	Collapsed int64 // answered by somebody else's identical call
	Stale     int64 // answered by an outdated list, because the server failed
	Entries   int64
	Bytes     int64
}

// cache keeps results for as long as their servers said. Nothing is allocated
// before the first of them does.
type cache struct {
	maxBytes uint64
	store    atomic.Pointer[otter.Cache[cacheKey, *cached]]

	hits, misses, collapsed, stale atomic.Int64

	mu     sync.Mutex           // guards order and making the store
	order  map[topic][]cacheKey // oldest first; may name entries that are gone
	closed bool
}

func newCache(maxBytes int64) *cache {
	if maxBytes <= 0 {
		maxBytes = DefaultCache
	}
	return &cache{maxBytes: uint64(maxBytes), order: map[topic][]cacheKey{}}
}

// get returns the entry, and whether it is fresh. An entry that is not may still
// stand in for a list that cannot be read.
func (c *cache) get(k cacheKey) (e *cached, fresh bool) {
	store := c.store.Load()
	if store == nil {
		return nil, false
	}
	e, ok := store.GetIfPresent(k)
	if !ok {
		return nil, false
	}
	return e, time.Now().Before(e.until)
}

// put keeps a result for ttl from now on. An expired list is kept for longer, to
// stand in.
func (c *cache) put(k cacheKey, raw []byte, f wire.Freshness) {
	cost := uint64(len(raw) + entryCost)
	if f.TTL <= 0 || cost > c.maxBytes/4 {
		return
	}
	e := &cached{raw: bytes.Clone(raw), until: time.Now().Add(f.TTL), keep: f.TTL, public: f.Public}
	if isList(k.method) {
		e.keep += keepStale
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	store := c.open()
	if store == nil {
		return
	}
	store.Set(k, e)
	keys := append(dropKey(c.order[k.topic], k), k)
	if len(keys) > maxPerTool {
		keys = c.living(store, keys)
	}
	for len(keys) > maxPerTool {
		store.Invalidate(keys[0])
		keys = keys[1:]
	}
	c.order[k.topic] = keys
}

// open needs mu. It makes the store when it is first needed.
func (c *cache) open() *otter.Cache[cacheKey, *cached] {
	if c.closed {
		return nil
	}
	if s := c.store.Load(); s != nil {
		return s
	}
	s := otter.Must(&otter.Options[cacheKey, *cached]{
		MaximumWeight: c.maxBytes,
		Weigher:       func(_ cacheKey, e *cached) uint32 { return uint32(len(e.raw) + entryCost) },
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[cacheKey, *cached]) time.Duration {
			return e.Value.keep
		}),
	})
	c.store.Store(s)
	return s
}

func dropKey(keys []cacheKey, k cacheKey) []cacheKey {
	for i, o := range keys {
		if o == k {
			return append(keys[:i:i], keys[i+1:]...)
		}
	}
	return keys
}

// living leaves out keys whose entries have expired or were evicted.
func (c *cache) living(store *otter.Cache[cacheKey, *cached], keys []cacheKey) []cacheKey {
	var out []cacheKey
	for _, k := range keys {
		if _, ok := store.GetEntryQuietly(k); ok {
			out = append(out, k)
		}
	}
	return out
}

// drop removes all entries of a server.
func (c *cache) drop(server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	store := c.store.Load()
	for t, keys := range c.order {
		if t.server != server {
			continue
		}
		for _, k := range keys {
			store.Invalidate(k)
		}
		delete(c.order, t)
	}
}

// entries counts the living entries of a server.
func (c *cache) entries(server string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	store := c.store.Load()
	n := 0
	for t, keys := range c.order {
		if t.server == server {
			n += len(c.living(store, keys))
		}
	}
	return n
}

func (c *cache) stats() CacheStats {
	s := CacheStats{Hits: c.hits.Load(), Misses: c.misses.Load(), Collapsed: c.collapsed.Load(), Stale: c.stale.Load()}
	if store := c.store.Load(); store != nil {
		store.CleanUp()
		s.Entries = int64(store.EstimatedSize())
		s.Bytes = int64(store.WeightedSize())
	}
	return s
}

func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if store := c.store.Swap(nil); store != nil {
		store.StopAllGoroutines()
	}
	clear(c.order)
}

func isList(method string) bool {
	switch method {
	case wire.MethodToolsList, wire.MethodPromptsList, wire.MethodResourcesList, wire.MethodTemplatesList:
		return true
	}
	return false
}

// cacheable reports whether the specification lets results of method be kept. Of
// tools/call only those are that say so themselves.
func cacheable(method string) bool {
	return isList(method) || method == wire.MethodDiscover || method == wire.MethodResourcesRead || method == wire.MethodToolsCall
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
func freshness(result []byte) wire.Freshness {
	if !mayDeclare(result) {
		return wire.Freshness{}
	}
	f := wire.ReadFreshness(result)
	if f.TTL <= 0 || wire.ResultType(result) != wire.ResultComplete {
		return wire.Freshness{}
	}
	if failed, ok := jsonx.Get(result, "isError"); ok && string(failed) != "false" {
		return wire.Freshness{}
	}
	if _, dup := jsonx.Duplicate(result); dup {
		return wire.Freshness{}
	}
	return f
}
