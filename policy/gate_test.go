package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
)

// Each step of the gate refuses before the next one is asked.
func TestOrderOfTheGate(t *testing.T) {
	cfg := configOf(nil, []string{"s/denied"}, config.Server{Name: "s"})
	cfg.Usher.Budgets.PerServer = config.Budget{Run: 3}
	h := newFakeHost(described("denied", "old"), described("changed", "old"), described("kept", "x"))
	h.do = answers(`{"ttlMs":1000}`)
	var outcomes []string
	g := openGate(t, h, nil, &Options{Config: cfg, OnCall: func(f Finished) { outcomes = append(outcomes, f.Tool+" "+f.Outcome) }})
	call := func(tool string) error {
		_, err := g.Call(t.Context(), callOf("s", tool))
		return err
	}
	if err := call("denied"); !errors.Is(err, ErrDenied) || h.lists.Load() != 0 {
		t.Errorf("allow: %v, the list was read %d times", err, h.lists.Load())
	}
	if err := call("kept"); err != nil {
		t.Error(err)
	}
	h.setTools(described("denied", "new"), described("changed", "new"), described("kept", "x"))
	if err := call("changed"); !errors.Is(err, ErrSchemaChanged) {
		t.Errorf("pin: %v", err)
	}
	if err := call("kept"); err != nil {
		t.Error(err)
	}
	lists := h.lists.Load()
	h.setTools(described("kept", "changed"))
	if err := call("kept"); !errors.Is(err, ErrBudget) || h.lists.Load() != lists {
		t.Errorf("budget: %v, the list was read %d times", err, h.lists.Load()-lists)
	}
	if err := call("denied"); !errors.Is(err, ErrDenied) {
		t.Errorf("allow comes before budget: %v", err)
	}
	if n := h.calls.Load(); n != 1 {
		t.Errorf("the server was asked %d times, want once", n)
	}
	want := []string{"denied denied", "kept ok", "changed changed", "kept cached", "kept over_budget", "denied denied"}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("outcomes (-want +got)\n%s", diff)
	}
}

func TestCallPassesThrough(t *testing.T) {
	h := newFakeHost(simpleTool("x"))
	result := `{ "content" : [ {"type":"new-kind","n":9007199254740993} ], "zzz":1.0 }`
	var got host.Request
	h.do = func(_ context.Context, k host.Key, req host.Request) ([]byte, error) {
		if k != (host.Key{Principal: "local", Server: "s", Account: "a", Lane: "7"}) {
			t.Errorf("key %+v", k)
		}
		got = req
		return []byte(result), nil
	}
	g := openGate(t, h, nil, nil)
	c := Call{
		Key: Key{Server: "s", Account: "a", Lane: "7"}, Tool: "x",
		Request: withParams([]byte(`{"name":"x" , "arguments": {"b":1, "a":1e5}, "_meta":{"progressToken":1},"unknown":[]}`)),
	}
	c.Timeout, c.OnNotification = time.Minute, func(mcp.Message) {}
	res, err := g.Call(t.Context(), c)
	if err != nil || string(res.Raw) != result || res.Cached || res.TTL != 0 {
		t.Errorf("%+v %s, %v", res, res.Raw, err)
	}
	if string(got.Params) != string(c.Params) || got.Timeout != time.Minute || got.OnNotification == nil || got.Method != mcp.MethodToolsCall {
		t.Errorf("sent %+v %s", got, got.Params)
	}
	answer := mcp.Errorf(-32000, "no")
	h.do = func(context.Context, host.Key, host.Request) ([]byte, error) { return nil, answer }
	if _, err := g.Call(t.Context(), c); !errors.Is(err, error(answer)) {
		t.Errorf("%v, want the server's own error", err)
	}
}

func TestArgumentsMustBeAnObject(t *testing.T) {
	h := newFakeHost(simpleTool("x"))
	g := openGate(t, h, nil, nil)
	for args, want := range map[string]string{
		`[1]`: "arguments is array, not an object", `"a"`: "arguments is string, not an object", `null`: "arguments is null, not an object",
		`{"a":}`: "arguments: invalid JSON", `{} {}`: "arguments: invalid JSON", ``: "arguments is nothing, not an object",
	} {
		_, err := g.Call(t.Context(), Call{Key: Key{Server: "s"}, Tool: "x", Arguments: []byte(args)})
		var we *mcp.Error
		if !errors.As(err, &we) || we.Code != mcp.CodeInvalidParams || !strings.HasPrefix(we.Message, want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	if n := h.calls.Load(); n != 0 {
		t.Errorf("%d reached the server", n)
	}
}

func TestListing(t *testing.T) {
	h := newFakeHost(simpleTool("read"), simpleTool("write"), simpleTool("wipe"), described("odd\u200b", "x"), `{"description":"nameless"}`, `{"name":"ctrl\u0007"}`)
	g := openGate(t, h, nil, &Options{Config: configOf(nil, []string{"s/wipe"}, config.Server{
		Name: "s", Tools: config.ToolRules{Rename: map[string]string{"read": "write"}},
	})})
	if _, ok, err := g.Known(t.Context(), Caller{}, Key{Server: "s"}); ok || err != nil || h.lists.Load() != 0 {
		t.Errorf("known before the server was asked: %v, %v", ok, err)
	}
	l, err := g.Tools(t.Context(), Caller{}, Key{Server: "s"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range l.Tools {
		got = append(got, fmt.Sprintf("%s=%s %v", config.Visible(tool.Name), config.Visible(tool.Own), tool.Hidden))
	}
	// The real write is shadowed by the rename: one name, one tool.
	want := []string{`"write"="read" []`, `"odd\u{200b}"="odd\u{200b}" [name]`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if string(l.Tools[0].Definition) != simpleTool("read") || len(l.Catalog.Tools) != 6 {
		t.Error("a definition was changed")
	}
	if version, err := g.Version(t.Context(), Caller{}, Key{Server: "s"}); err != nil || version != l.Version {
		t.Errorf("version %q, %v; want %q", version, err, l.Version)
	}
	again, ok, err := g.Known(t.Context(), Caller{}, Key{Server: "s"})
	if !ok || err != nil || len(again.Tools) != 2 || h.lists.Load() != 1 {
		t.Errorf("%v, %v, %v", again.Tools, ok, err)
	}
	g.Configure(configOf(nil, []string{"s"}))
	if _, err := g.Tools(t.Context(), Caller{}, Key{Server: "s"}); !errors.Is(err, ErrDenied) {
		t.Errorf("%v, want ErrDenied", err)
	}
	if version, err := g.Version(t.Context(), Caller{}, Key{Server: "s"}); !errors.Is(err, ErrDenied) || version != "" {
		t.Errorf("version %q, %v, want ErrDenied", version, err)
	}
}

func TestPromptsAndResourcesAreHeardOf(t *testing.T) {
	h := newFakeHost(simpleTool("x"))
	h.do = func(context.Context, host.Key, host.Request) ([]byte, error) { return []byte(`{}`), nil }
	var heard []string
	g := openGate(t, h, nil, &Options{OnCall: func(f Finished) { heard = append(heard, f.Method+" "+f.Tool+" "+f.Outcome) }})
	for method, params := range map[string]string{
		mcp.MethodResourcesRead: `{"uri":"file:///a"}`, mcp.MethodPromptsGet: `{"name":"p","arguments":{}}`,
		mcp.MethodPromptsList: `{}`, mcp.MethodComplete: `{}`,
	} {
		req := Request{}
		req.Method, req.Params = method, []byte(params)
		if _, err := g.Do(t.Context(), Caller{}, Key{Server: "s"}, req); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(heard)
	if diff := cmp.Diff([]string{"prompts/get p ok", "resources/read file:///a ok"}, heard); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
}

func TestFinished(t *testing.T) {
	h := newFakeHost(simpleTool("x"))
	var last Finished
	var hash string
	g := openGate(t, h, nil, &Options{OnCall: func(f Finished) { sum := f.ArgumentsSum(); last, hash = f, hex.EncodeToString(sum[:]) }})
	for _, tt := range []struct {
		result  string
		err     error
		outcome string
	}{
		{result: `{}`, outcome: OutcomeOK},
		{result: `{"isError":true}`, outcome: OutcomeToolError},
		{result: `{"isError":false}`, outcome: OutcomeOK},
		{err: host.ErrOutcomeUnknown, outcome: OutcomeUnknown},
		{err: &host.NeedsLoginError{}, outcome: OutcomeLogin},
		{err: context.Canceled, outcome: OutcomeCancelled},
		{err: mcp.Errorf(1, "x"), outcome: OutcomeError},
	} {
		h.do = func(context.Context, host.Key, host.Request) ([]byte, error) { return []byte(tt.result), tt.err }
		_, _ = g.Call(t.Context(), Call{Caller: As("ann"), Key: Key{Server: "s", Account: "w"}, Tool: "x", Request: withParams([]byte(`{"name":"x","arguments":{ }}`))})
		if last.Outcome != tt.outcome {
			t.Errorf("%s %v: %s, want %s", tt.result, tt.err, last.Outcome, tt.outcome)
		}
	}
	sum := sha256.Sum256([]byte(`{ }`))
	if want := hex.EncodeToString(sum[:]); hash != want {
		t.Errorf("hash %s, want that of the raw arguments %s", hash, want)
	}
	e := last.Event()
	e.Took, e.At = 0, time.Time{}
	want := event.CallFinished{Header: event.Header{Server: "s", Principal: "ann", Account: "w"}, Method: "tools/call", Tool: "x", Outcome: "error"}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	_, _ = g.Call(t.Context(), callOf("s", "x"))
	if hash != strings.Repeat("0", 64) {
		t.Errorf("hash %s of no arguments", hash)
	}
}

// Everything at once, for the race detector.
func TestGateUnderConcurrency(t *testing.T) {
	h := newFakeHost(simpleTool("a"), simpleTool("b"), simpleTool("c"))
	h.do = answers(`{"ttlMs":2}`)
	cfg := configOf(nil, []string{"s0/c"})
	cfg.Usher.Budgets.Total = config.Budget{Calls: 100_000}
	g := openGate(t, h, nil, &Options{Config: cfg, OnCall: func(f Finished) { f.ArgumentsSum() }})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				k := Key{Server: fmt.Sprint("s", j%3), Principal: fmt.Sprint("p", i%2)}
				_, _ = g.Call(context.Background(), Call{Caller: As(k.Principal), Key: k, Tool: string(rune('a' + j%4)), Arguments: fmt.Appendf(nil, `{"j":%d}`, j%5)})
				switch j % 50 {
				case 10:
					h.setTools(simpleTool("a"), simpleTool("b"), described("c", fmt.Sprint(j)))
				case 20:
					g.Notified(k, mcp.Message{Method: mcp.MethodNotifyTools})
				case 30:
					g.Configure(cfg)
				case 40:
					g.Forget(k.Server)
				case 45:
					_, _ = g.Tools(context.Background(), As(k.Principal), k)
					_ = g.CacheStats()
					_ = g.Budgets()
				}
			}
		})
	}
	wg.Wait()
}

// FuzzCall throws foreign params at the gate: it must not panic, and what reaches
// the server must name a tool that is listed and not denied.
func FuzzCall(f *testing.F) {
	for _, tt := range bypasses {
		if tt.params != "" {
			f.Add([]byte(tt.params))
		} else {
			f.Add([]byte(`{"name":` + quoted(tt.tool) + `}`))
		}
	}
	f.Add([]byte(`{"name":"list_repos","arguments":{"a":[1,{"b":null}]},"_meta":{"progressToken":1}}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		h := newFakeHost(simpleTool("list_repos"), simpleTool("delete_repo"))
		h.do = answers(`{"ttlMs":1000}`)
		g := newGate(h.line, nil, &Options{Config: configOf(nil, []string{"github/delete_*"})})
		defer g.Close(context.Background())
		var req Request
		req.Method, req.Params = mcp.MethodToolsCall, params
		for range 2 {
			_, _ = g.Do(t.Context(), Caller{}, Key{Server: "github"}, req)
		}
		for _, sent := range h.log() {
			p, err := mcp.ReadParams([]byte(strings.TrimPrefix(sent, "tools/call ")))
			if err != nil || p.Name != "list_repos" {
				t.Fatalf("%q reached the server", sent)
			}
		}
	})
}
