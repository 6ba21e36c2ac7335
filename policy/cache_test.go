package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
)

// cacheWorld is a gate in a bubble, before a server that numbers its answers.
type cacheWorld struct {
	*testing.T
	h      *fakeHost
	g      *Gate
	extra  string // members of every result
	failed error
	n      atomic.Int64
}

func inCacheWorld(t *testing.T, extra string, test func(w *cacheWorld)) {
	synctest.Test(t, func(t *testing.T) {
		w := &cacheWorld{T: t, h: newFakeHost(simpleTool("x"), simpleTool("y")), extra: extra}
		w.h.do = func(context.Context, host.Key, host.Request) ([]byte, error) {
			if w.failed != nil {
				return nil, w.failed
			}
			return fmt.Appendf(nil, `{"n":%d%s}`, w.n.Add(1), w.extra), nil
		}
		w.g = newGate(w.h.line, nil, nil)
		defer w.g.Close(t.Context())
		test(w)
	})
}

func (w *cacheWorld) wait(d time.Duration) { time.Sleep(d) }

// asked runs a call and reports whether the server was asked.
func (w *cacheWorld) asked(c Call) bool {
	w.Helper()
	before := w.n.Load()
	if _, err := w.g.Call(w.Context(), c); err != nil {
		w.Fatal(err)
	}
	return w.n.Load() > before
}

func (w *cacheWorld) did(method, params string) Result {
	w.Helper()
	var req Request
	req.Method = method
	if params != "" {
		req.Params = []byte(params)
	}
	res, err := w.g.Do(w.Context(), Caller{}, Key{Server: "s"}, req)
	if err != nil {
		w.Fatal(err)
	}
	return res
}

func (w *cacheWorld) check(what string, got, want bool) {
	w.Helper()
	if got != want {
		w.Errorf("%s: asked %v, want %v", what, got, want)
	}
}

func TestCacheKeepsForTheTTL(t *testing.T) {
	inCacheWorld(t, `,"ttlMs":5000`, func(w *cacheWorld) {
		w.check("first", w.asked(callOf("s", "x")), true)
		w.check("second", w.asked(callOf("s", "x")), false)
		w.wait(5*time.Second - 1)
		res, err := w.g.Call(w.Context(), callOf("s", "x"))
		if err != nil || !res.Cached || res.TTL != 1 || string(res.Raw) != `{"n":1,"ttlMs":5000}` {
			t.Errorf("%+v %s, %v", res, res.Raw, err)
		}
		w.wait(1)
		w.check("at the end", w.asked(callOf("s", "x")), true)
		w.check("after it", w.asked(callOf("s", "x")), false)
		got := w.g.CacheStats()
		if got.Hits != 3 || got.Misses != 2 || got.Entries != 1 {
			t.Errorf("%+v", got)
		}
	})
}

func TestCacheKeepsOnlyWhatSaysSo(t *testing.T) {
	for extra, kept := range map[string]bool{
		``: false, `,"ttlMs":0`: false, `,"ttlMs":-1`: false, `,"ttlMs":"5"`: false, `,"ttlMs":null`: false,
		`,"ttlMs":1000`: true, `,"ttlMs":9223372036854775808`: true, `,"ttlMs":0.5`: true,
		`,"ttlMs":1000,"isError":true`: false, `,"ttlMs":1000,"isError":false`: true, `,"isError":1,"ttlMs":1000`: false,
		`,"ttlMs":1000,"resultType":"complete"`: true, `,"ttlMs":1000,"resultType":"input_required"`: false,
		`,"ttlMs":1000,"resultType":"task"`: false, `,"ttlMs":1000,"ttlMs":1000`: false, `,"x":{"ttlMs":1000}`: false,
	} {
		inCacheWorld(t, extra, func(w *cacheWorld) {
			w.asked(callOf("s", "x"))
			w.check(extra, w.asked(callOf("s", "x")), !kept)
		})
	}
}

func TestMayDeclare(t *testing.T) {
	for text, want := range map[string]bool{
		``: false, `M`: false, `"ttlMs"`: true, `{"ttlMs":1}`: true, `"ttlM`: false, `ttlMs"`: false, `{"MMM":"M","ttlMs":1}`: true, `"ttlMs`: false,
		`"ttlMx""ttlMs"`: true,
	} {
		if got := mayDeclare([]byte(text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestCacheKey(t *testing.T) {
	base := `{"name":"x","arguments":{"a":1,"b":[1,2],"n":9007199254740993}}`
	for _, tt := range []struct {
		name, params string
		same         bool
	}{
		{"itself", base, true},
		{"order and spaces", `{"arguments":{"n":9007199254740993, "b":[1, 2],"a":1},"name":"x"}`, true},
		{"escapes", `{"name":"\u0078","arguments":{"\u0061":1,"b":[1,2],"n":9007199254740993}}`, true},
		{"progress and trace", `{"name":"x","arguments":{"a":1,"b":[1,2],"n":9007199254740993},"_meta":{"progressToken":7,"traceparent":"00-1","io.modelcontextprotocol/clientInfo":{"name":"q"}}}`, true},
		{"other integer beyond 2^53", `{"name":"x","arguments":{"a":1,"b":[1,2],"n":9007199254740992}}`, false},
		{"order of a list", `{"name":"x","arguments":{"a":1,"b":[2,1],"n":9007199254740993}}`, false},
		{"1.0", `{"name":"x","arguments":{"a":1.0,"b":[1,2],"n":9007199254740993}}`, false},
		{"other tool", `{"name":"y","arguments":{"a":1,"b":[1,2],"n":9007199254740993}}`, false},
		{"more", `{"name":"x","arguments":{"a":1,"b":[1,2],"n":9007199254740993},"z":1}`, false},
		{"other meta", `{"name":"x","arguments":{"a":1,"b":[1,2],"n":9007199254740993},"_meta":{"example.com/tenant":"b"}}`, false},
		{"capabilities", `{"name":"x","arguments":{"a":1,"b":[1,2],"n":9007199254740993},"_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}}`, false},
		{"answers to a question", `{"name":"x","arguments":{"a":1,"b":[1,2],"n":9007199254740993},"inputResponses":{}}`, false},
		{"state of a question", `{"name":"x","arguments":{"a":1,"b":[1,2],"n":9007199254740993},"requestState":"s"}`, false},
		{"ambiguous arguments", `{"name":"x","arguments":{"a":1,"a":1,"b":[1,2],"n":9007199254740993}}`, false},
	} {
		inCacheWorld(t, `,"ttlMs":5000`, func(w *cacheWorld) {
			call := func(params string) bool {
				p, werr := mcp.ReadParams([]byte(params))
				if werr != nil {
					t.Fatal(werr)
				}
				return w.asked(Call{Key: Key{Server: "s"}, Tool: p.Name, Request: withParams([]byte(params))})
			}
			call(base)
			w.check(tt.name, call(tt.params), !tt.same)
			if !tt.same && (tt.name == "answers to a question" || tt.name == "state of a question") {
				w.check(tt.name+" is not kept", call(tt.params), true)
			}
		})
	}
}

func TestCacheIsPrivateUnlessPublic(t *testing.T) {
	keys := []Key{
		{Server: "s"},
		{Server: "s", Principal: "ann"},
		{Server: "s", Account: "work"},
		{Server: "s", Principal: "ann", Account: "work"},
	}
	for extra, shared := range map[string]bool{
		`,"ttlMs":5000`: false, `,"ttlMs":5000,"cacheScope":"private"`: false, `,"ttlMs":5000,"cacheScope":"Public"`: false,
		`,"ttlMs":5000,"cacheScope":"public"`: true,
	} {
		inCacheWorld(t, extra, func(w *cacheWorld) {
			for i, k := range keys {
				w.check(fmt.Sprint(extra, k), w.asked(Call{Caller: As(k.Principal), Key: k, Tool: "x"}), i == 0 || !shared)
			}
			w.check("another lane", w.asked(Call{Key: Key{Server: "s", Lane: "2"}, Tool: "x"}), false)
			w.check("another server", w.asked(callOf("t", "x")), true)
		})
	}
}

func TestCacheForgets(t *testing.T) {
	k := Key{Server: "s"}
	for name, forget := range map[string]func(g *Gate){
		"login":  func(g *Gate) { g.Relogin(k) },
		"reload": func(g *Gate) { g.Forget("s") },
	} {
		inCacheWorld(t, `,"ttlMs":50000`, func(w *cacheWorld) {
			w.asked(callOf("s", "x"))
			forget(w.g)
			w.check(name, w.asked(callOf("s", "x")), true)
			w.check(name+", then kept again", w.asked(callOf("s", "x")), false)
		})
	}
	inCacheWorld(t, `,"ttlMs":50000`, func(w *cacheWorld) {
		w.asked(callOf("s", "x"))
		w.asked(callOf("t", "x"))
		w.g.Forget("s")
		w.check("another server", w.asked(callOf("t", "x")), false)
		if n := w.g.CacheEntries("s"); n != 0 {
			t.Errorf("%d entries are left", n)
		}
		w.g.Relogin(Key{Server: "t", Account: "other"})
		w.check("another account's login", w.asked(callOf("t", "x")), false)
	})
}

// A result that was asked for before an invalidation must not be kept after it.
func TestCacheLateAnswerIsNotKept(t *testing.T) {
	inCacheWorld(t, `,"ttlMs":50000`, func(w *cacheWorld) {
		answer := w.h.do
		w.h.do = func(ctx context.Context, k host.Key, req host.Request) ([]byte, error) {
			w.g.Relogin(Key{Server: "s"}) // while the call is in flight
			return answer(ctx, k, req)
		}
		w.asked(callOf("s", "x"))
		w.h.do = answer
		w.check("after the login", w.asked(callOf("s", "x")), true)
	})
}

func TestCacheOfMethods(t *testing.T) {
	lists := map[string]string{ // method → what makes it outdated
		mcp.MethodToolsList: mcp.MethodNotifyTools, mcp.MethodPromptsList: mcp.MethodNotifyPrompts,
		mcp.MethodResourcesList: mcp.MethodNotifyRes, mcp.MethodTemplatesList: mcp.MethodNotifyRes,
		mcp.MethodResourcesRead: mcp.MethodNotifyUpdated, mcp.MethodDiscover: "",
	}
	for method, notice := range lists {
		for _, scope := range []string{"private", "public"} {
			inCacheWorld(t, `,"ttlMs":5000,"cacheScope":"`+scope+`"`, func(w *cacheWorld) {
				first := w.did(method, `{"uri":"a"}`)
				if again := w.did(method, `{"uri":"a"}`); string(again.Raw) != string(first.Raw) || !again.Cached {
					t.Errorf("%s is not kept", method)
				}
				if other := w.did(method, `{"uri":"b"}`); other.Cached {
					t.Errorf("%s with other params is answered from the cache", method)
				}
				w.g.Notified(Key{Server: "s"}, mcp.Message{Method: "notifications/message"})
				if !w.did(method, `{"uri":"a"}`).Cached {
					t.Errorf("%s: a log message made it outdated", method)
				}
				if notice == "" {
					return
				}
				w.g.Notified(Key{Server: "s"}, mcp.Message{Method: notice})
				if w.did(method, `{"uri":"a"}`).Cached {
					t.Errorf("%s is answered from the cache after %s", method, notice)
				}
			})
		}
	}
	for _, method := range []string{mcp.MethodPromptsGet, mcp.MethodComplete, mcp.MethodPing, "tasks/get"} {
		inCacheWorld(t, `,"ttlMs":5000`, func(w *cacheWorld) {
			w.did(method, `{"name":"a"}`)
			if w.did(method, `{"name":"a"}`).Cached {
				t.Errorf("%s is kept", method)
			}
		})
	}
}

func TestStaleListsStandIn(t *testing.T) {
	inCacheWorld(t, `,"ttlMs":1000`, func(w *cacheWorld) {
		w.did(mcp.MethodPromptsList, "")
		w.asked(callOf("s", "x"))
		w.wait(time.Minute)
		w.failed = &host.Error{Server: "s", Err: host.ErrCircuitOpen}
		if res := w.did(mcp.MethodPromptsList, ""); !res.Stale || string(res.Raw) != `{"n":1,"ttlMs":1000}` || res.TTL != 0 {
			t.Errorf("%+v", res)
		}
		if _, err := w.g.Call(w.Context(), callOf("s", "x")); !errors.Is(err, host.ErrCircuitOpen) {
			t.Errorf("a result stands in: %v", err)
		}
		for _, final := range []error{mcp.Errorf(mcp.CodeInternal, "no"), host.ErrDisabled, host.ErrHeldBack, context.Canceled} {
			w.failed = final
			var req Request
			req.Method = mcp.MethodPromptsList
			if _, err := w.g.Do(w.Context(), Caller{}, Key{Server: "s"}, req); err == nil {
				t.Errorf("a list stands in for %v", final)
			}
		}
		w.failed = nil
		if res := w.did(mcp.MethodPromptsList, ""); res.Stale || res.Cached {
			t.Errorf("after the server came back: %+v", res)
		}
		if n := w.g.CacheStats().Stale; n != 1 {
			t.Errorf("%d counted as stale", n)
		}
	})
}

func TestCacheBounds(t *testing.T) {
	inCacheWorld(t, `,"ttlMs":500000`, func(w *cacheWorld) {
		call := func(tool string, i int) Call {
			return Call{Key: Key{Server: "s"}, Tool: tool, Arguments: fmt.Appendf(nil, `{"i":%d}`, i)}
		}
		w.asked(call("y", 0))
		for i := range 2 * maxPerTool {
			w.asked(call("x", i))
		}
		if n := w.g.CacheEntries("s"); n != maxPerTool+1 {
			t.Errorf("%d entries, want %d", n, maxPerTool+1)
		}
		w.check("the oldest", w.asked(call("x", 0)), true)
		w.check("the newest", w.asked(call("x", 2*maxPerTool-1)), false)
		w.check("another tool", w.asked(call("y", 0)), false)
	})
	c := newCache(10_000)
	defer c.close()
	for i := range 100 {
		k := cacheKey{topic: topic{"s", "m", fmt.Sprint(i)}, sum: sha256.Sum256([]byte{byte(i)})}
		c.put(k, make([]byte, 1000), mcp.Freshness{TTL: time.Hour})
	}
	c.put(cacheKey{topic: topic{server: "big"}}, make([]byte, 5000), mcp.Freshness{TTL: time.Hour})
	if s := c.stats(); s.Bytes > 10_000 || s.Entries == 0 || s.Entries > 8 {
		t.Errorf("%+v", s)
	}
	if n := c.entries("big"); n != 0 {
		t.Error("a result of half the cache is kept")
	}
}

// Who was asked a question on the way has made the answer their own.
func TestCacheAnswersThatTookAPerson(t *testing.T) {
	inCacheWorld(t, `,"ttlMs":50000`, func(w *cacheWorld) {
		answer := w.h.do
		w.h.do = func(ctx context.Context, k host.Key, req host.Request) ([]byte, error) {
			if req.OnRequest != nil {
				_, _ = req.OnRequest(ctx, mcp.MethodElicit, nil)
			}
			return answer(ctx, k, req)
		}
		c := callOf("s", "x")
		c.OnRequest = func(context.Context, string, []byte) ([]byte, *mcp.Error) { return []byte(`{}`), nil }
		w.asked(c)
		w.check("asked on the way", w.asked(c), true)
		c = callOf("s", "y")
		c.Answer = func(context.Context, string, []byte) ([]byte, *mcp.Error) { return []byte(`{}`), nil }
		w.asked(c)
		w.check("answered by the caller", w.asked(c), true)
	})
}

// The cache against a model that is a map and a list.
func TestCacheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A bubble has no deadline, which rapid would ask for.
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			type entry struct {
				value string
				until time.Time
			}
			c := newCache(1 << 30)
			defer c.close()
			model := map[cacheKey]entry{}
			order := map[topic][]cacheKey{} // oldest first
			key := func() cacheKey {
				return cacheKey{
					topic: topic{server: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "server"), tool: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tool")},
					sum:   [32]byte{byte(rapid.IntRange(0, 80).Draw(t, "arguments"))},
					who:   identity{principal: rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "who")},
				}
			}
			remove := func(keys []cacheKey, k cacheKey) []cacheKey {
				var out []cacheKey
				for _, o := range keys {
					if o != k && time.Now().Before(model[o].until) {
						out = append(out, o)
					}
				}
				return out
			}
			t.Repeat(map[string]func(*rapid.T){
				"put": func(t *rapid.T) {
					k, ttl := key(), time.Duration(rapid.IntRange(1, 1000).Draw(t, "ttl"))*time.Millisecond
					for i := range rapid.IntRange(1, 40).Draw(t, "burst") {
						k.sum[0] = byte((int(k.sum[0]) + i) % 81)
						value := fmt.Sprint(ttl, i)
						c.put(k, []byte(value), mcp.Freshness{TTL: ttl})
						keys := append(remove(order[k.topic], k), k)
						model[k] = entry{value, time.Now().Add(ttl)}
						for len(keys) > maxPerTool {
							delete(model, keys[0])
							keys = keys[1:]
						}
						order[k.topic] = keys
					}
				},
				"get": func(t *rapid.T) {
					k := key()
					want, ok := model[k]
					ok = ok && time.Now().Before(want.until)
					got, fresh := c.get(k)
					if fresh != ok || ok && string(got.raw) != want.value {
						t.Fatalf("get %v: %v %v, want %v %v", k, got, fresh, want, ok)
					}
				},
				"wait": func(t *rapid.T) {
					time.Sleep(time.Duration(rapid.IntRange(1, 700).Draw(t, "wait")) * time.Millisecond)
				},
				"drop": func(t *rapid.T) {
					if rapid.IntRange(0, 9).Draw(t, "rarely") > 0 {
						return
					}
					server := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "server")
					c.drop(server)
					for k := range model {
						if k.server == server {
							delete(model, k)
							order[k.topic] = nil
						}
					}
				},
				"": func(t *rapid.T) {
					for _, server := range []string{"a", "b"} {
						n := 0
						for k, e := range model {
							if k.server == server && time.Now().Before(e.until) {
								n++
							}
						}
						if got := c.entries(server); got != n {
							t.Fatalf("%d entries of %s, want %d", got, server, n)
						}
					}
				},
			})
		})
	})
}
