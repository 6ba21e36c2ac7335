package policy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/mcp"
)

// numbered is a key of its own tool, so that only the bound of all entries applies.
func numbered(i int) cacheKey {
	return cacheKey{topic: topic{server: "s", method: mcp.MethodToolsCall, tool: string(rune('a' + i))}}
}

// What was asked for last stays when there is no room for all.
func TestCacheKeepsWhatIsUsed(t *testing.T) {
	c := newCache(8 * (1000 + entryCost))
	defer c.close()
	for i := range 8 {
		c.put(numbered(i), make([]byte, 1000), mcp.Freshness{TTL: time.Hour})
	}
	c.get(numbered(0))
	c.put(numbered(1), make([]byte, 1000), mcp.Freshness{TTL: time.Hour}) // again
	for i := range 3 {
		c.put(numbered(8+i), make([]byte, 1000), mcp.Freshness{TTL: time.Hour})
	}
	for i := range 11 {
		want := i < 2 || i > 4
		if _, fresh := c.get(numbered(i)); fresh != want {
			t.Errorf("entry %d is there: %v, want %v", i, fresh, want)
		}
	}
	if s := c.stats(); s.Entries != 8 || s.Bytes != 8*(1000+entryCost) {
		t.Errorf("%+v", s)
	}
	c.drop("s")
	if s := c.stats(); s.Entries != 0 || s.Bytes != 0 || len(c.topics) != 0 || c.recent.Len() != 0 {
		t.Errorf("after the server was dropped: %+v", s)
	}
	c.close()
	c.put(numbered(0), nil, mcp.Freshness{TTL: time.Hour})
	if _, fresh := c.get(numbered(0)); fresh {
		t.Error("a closed cache keeps results")
	}
}

// What nobody asks for any more does not take room forever.
func TestCacheSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(0)
		defer c.close()
		list := cacheKey{topic: topic{server: "s", method: mcp.MethodToolsList}}
		c.put(list, nil, mcp.Freshness{TTL: time.Second})
		for i := range 5 {
			c.put(numbered(i), nil, mcp.Freshness{TTL: time.Second})
		}
		time.Sleep(sweepEvery)
		c.put(numbered(9), nil, mcp.Freshness{TTL: time.Hour})
		if len(c.byKey) != 2 {
			t.Errorf("%d entries are kept, want the list and the new one", len(c.byKey))
		}
		if e, fresh := c.get(list); e == nil || fresh {
			t.Errorf("the outdated list: %v, fresh %v", e, fresh)
		}
		time.Sleep(keepStale)
		if e, _ := c.get(list); e != nil {
			t.Error("a list stands in for longer than a day")
		}
		if s := c.stats(); s.Entries != 0 || s.Bytes != 0 {
			t.Errorf("%+v", s)
		}
	})
}
