package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy/pins"
	"github.com/usher-mcp/usher/vault"
)

// noteLog collects notes.
type noteLog struct {
	mu    sync.Mutex
	notes []string
}

func (l *noteLog) add(k Key, n pins.Note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = append(l.notes, strings.TrimSpace(n.Kind+" "+n.Tool+" "+n.From))
}

func (l *noteLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.notes
	l.notes = nil
	return out
}

func described(name, text string) string {
	return fmt.Sprintf(`{"name":%s,"description":%s}`, quoted(name), quoted(text))
}

// pinWorld is a gate in a bubble whose server's tools can be changed.
type pinWorld struct {
	*testing.T
	h     *fakeHost
	g     *Gate
	store vault.Store
	notes noteLog
}

func inPinWorld(t *testing.T, cfg *config.Config, tools []string, test func(w *pinWorld)) {
	synctest.Test(t, func(t *testing.T) {
		w := &pinWorld{T: t, h: newFakeHost(tools...), store: vault.NewMemory()}
		w.g = newGate(w.h.line, w.store, &Options{Config: cfg, OnNote: w.notes.add})
		defer w.g.Close(t.Context())
		w.list()
		test(w)
	})
}

func (w *pinWorld) list() map[string]string {
	w.Helper()
	l, err := w.g.Tools(w.Context(), Caller{}, Key{Server: "s"})
	if err != nil {
		w.Fatal(err)
	}
	out := map[string]string{}
	for _, t := range l.Tools {
		out[t.Name] = strings.TrimSpace(fmt.Sprint(map[bool]string{true: "changed "}[t.SchemaChanged], map[bool]string{true: "blocked"}[t.Blocked]))
	}
	return out
}

// becomes changes what the server lists, a minute later.
func (w *pinWorld) becomes(tools ...string) {
	time.Sleep(time.Minute)
	w.h.setTools(tools...)
	w.list()
}

func (w *pinWorld) wait(d time.Duration) { time.Sleep(d) }

func (w *pinWorld) call(tool string) error {
	_, err := w.g.Call(w.Context(), callOf("s", tool))
	return err
}

func (w *pinWorld) want(got, want any) {
	w.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPinsNoteNewRemovedRenamed(t *testing.T) {
	inPinWorld(t, nil, []string{described("a", "does a"), described("b", "does b")}, func(w *pinWorld) {
		w.want(w.notes.take(), []string(nil)) // the first list is believed
		w.becomes(described("a", "does a"), described("b", "does b"), described("c", "does c"))
		w.want(w.notes.take(), []string{"new c"})
		w.want(w.call("c"), error(nil)) // a new tool is only noted
		w.becomes(described("a", "does a"), described("bee", "does b"), described("c", "does c"))
		w.want(w.notes.take(), []string{"renamed bee b", "removed b"})
		w.want(w.call("bee"), error(nil))
		w.becomes(described("a", "does a"), described("b", "does something else"), described("bee", "does b"), described("c", "does c"))
		w.want(w.notes.take(), []string{"back b", "changed b"})
		if err := w.call("b"); !errors.Is(err, ErrSchemaChanged) {
			t.Errorf("a tool that came back with another definition: %v", err)
		}
		w.becomes(described("a", "does a"), described("b", "does something else"), described("bee", "does b"), described("c", "does c"))
		w.want(w.notes.take(), []string(nil)) // once is enough
		var got []string
		list, err := w.g.Pins("").List(w.Context())
		for _, p := range list {
			got = append(got, p.Tool+" "+p.State+" "+p.From)
		}
		w.want(err, error(nil))
		w.want(got, []string{"a same ", "b changed ", "bee renamed b", "c new "})
	})
}

func TestPinsAccept(t *testing.T) {
	inPinWorld(t, nil, []string{described("a", "old"), described("b", "old")}, func(w *pinWorld) {
		w.becomes(described("a", "new"), described("b", "new"))
		w.want(w.list(), map[string]string{"a": "changed blocked", "b": "changed blocked"})
		// The command runs in another process: nothing but the store is shared.
		other := pins.NewStore(w.store, "")
		d, err := other.Diff(w.Context(), "s", "a")
		w.want(err, error(nil))
		w.want(d.String(), "s/a\n  description changed: old → new\n")
		if _, err := other.Accept(w.Context(), "s", "a", "0123"); err == nil {
			t.Error("a definition that nobody looked at was accepted")
		}
		accepted, err := other.Accept(w.Context(), "s", "a", d.Hash)
		w.want(err, error(nil))
		w.want(accepted, []string{"a"})
		w.want(w.call("a"), error(nil))
		if err := w.call("b"); !errors.Is(err, ErrSchemaChanged) {
			t.Errorf("b: %v", err)
		}
		accepted, err = other.Accept(w.Context(), "s", "", "")
		w.want(err, error(nil))
		w.want(accepted, []string{"b"})
		w.want(w.call("b"), error(nil))
		w.want(w.list(), map[string]string{"a": "", "b": ""})
		accepted, err = other.Accept(w.Context(), "s", "", "")
		w.want(err, error(nil))
		w.want(accepted, []string(nil))
		for _, missing := range [][2]string{{"s", "x"}, {"t", ""}} {
			if _, err := other.Accept(w.Context(), missing[0], missing[1], ""); !errors.Is(err, pins.ErrNotPinned) {
				t.Errorf("accept %v: %v", missing, err)
			}
		}
		if _, err := other.Diff(w.Context(), "s", "x"); !errors.Is(err, pins.ErrNotPinned) {
			t.Errorf("diff: %v", err)
		}
	})
}

func TestPinsBackToTheOldDefinition(t *testing.T) {
	inPinWorld(t, nil, []string{described("a", "old")}, func(w *pinWorld) {
		w.becomes(described("a", "new"))
		w.becomes(described("a", "old"))
		w.want(w.call("a"), error(nil))
		d, err := w.g.Pins("").Diff(w.Context(), "s", "a")
		w.want(err, error(nil))
		w.want(len(d.Changes), 0)
	})
}

// A name listed twice with two definitions must not be called: which one would
// the server run?
func TestPinsTwoOfOneName(t *testing.T) {
	inPinWorld(t, nil, []string{described("a", "one"), described("a", "two"), described("b", "x")}, func(w *pinWorld) {
		if err := w.call("a"); !errors.Is(err, ErrSchemaChanged) {
			t.Errorf("%v", err)
		}
		w.want(w.call("b"), error(nil))
	})
}

func TestPinModes(t *testing.T) {
	for mode, want := range map[string]struct {
		listed  string
		refused bool
	}{config.PinsBlock: {"changed blocked", true}, config.PinsWarn: {"changed", false}, config.PinsOff: {"", false}} {
		t.Run(mode, func(t *testing.T) {
			cfg := configOf(nil, nil, config.Server{Name: "s", Pins: mode})
			inPinWorld(t, cfg, []string{described("a", "old")}, func(w *pinWorld) {
				w.becomes(described("a", "new"))
				w.want(w.list()["a"], want.listed)
				w.want(errors.Is(w.call("a"), ErrSchemaChanged), want.refused)
				list, err := w.g.Pins("").List(w.Context())
				w.want(err, error(nil))
				w.want(len(list) > 0, mode != config.PinsOff)
			})
		})
	}
}

func TestPinsArePerPrincipalAndServer(t *testing.T) {
	inPinWorld(t, nil, []string{described("a", "old")}, func(w *pinWorld) {
		w.becomes(described("a", "new"))
		for _, k := range []Key{{Server: "s", Principal: "ann"}, {Server: "t"}} {
			if _, err := w.g.Call(w.Context(), Call{Caller: As(k.Principal), Key: k, Tool: "a"}); err != nil {
				t.Errorf("%+v sees the tool for the first time: %v", k, err)
			}
		}
		if err := w.call("a"); !errors.Is(err, ErrSchemaChanged) {
			t.Error(err)
		}
	})
}

// TestNewAccountStartsFromPins: a label that was never used is no way past the pins
// of the server; later the two are apart.
func TestNewAccountStartsFromPins(t *testing.T) {
	inPinWorld(t, nil, []string{described("a", "old"), described("b", "same")}, func(w *pinWorld) {
		work := func(tool string) error {
			_, err := w.g.Call(w.Context(), Call{Key: Key{Server: "s", Account: "work"}, Tool: tool})
			return err
		}
		w.becomes(described("a", "new"), described("b", "same"), described("c", "added"))
		if err := work("a"); !errors.Is(err, ErrSchemaChanged) {
			t.Errorf("a new account uses the changed tool: %v", err)
		}
		for _, tool := range []string{"b", "c"} {
			if err := work(tool); err != nil {
				t.Errorf("%s: %v", tool, err)
			}
		}
		if _, err := pins.NewStore(w.store, "local").Accept(w.Context(), "s@work", "a", ""); err != nil {
			t.Fatal(err)
		}
		if err := work("a"); err != nil {
			t.Errorf("after it was accepted for the account: %v", err)
		}
		if err := w.call("a"); !errors.Is(err, ErrSchemaChanged) {
			t.Errorf("it was accepted for the account only: %v", err)
		}
	})
}

// A list that was remembered from an earlier run is read again before it is
// believed: that is when servers are updated.
func TestPinsConfirmRememberedLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := vault.NewMemory()
		h := newFakeHost(described("a", "old"))
		g := newGate(h.line, store, nil)
		if _, err := g.Call(t.Context(), callOf("s", "a")); err != nil {
			t.Fatal(err)
		}
		g.Close(t.Context())
		time.Sleep(time.Hour)
		// The next run: the catalog is known, and the server has been updated.
		remembered := *h.cachedCatalog()
		h.setTools(described("a", "new"))
		h.remember(remembered)
		g = newGate(h.line, store, nil)
		defer g.Close(t.Context())
		if _, err := g.Call(t.Context(), callOf("s", "a")); !errors.Is(err, ErrSchemaChanged) {
			t.Errorf("%v, want ErrSchemaChanged", err)
		}
		before := h.lists.Load()
		for range 5 {
			_, _ = g.Call(t.Context(), callOf("s", "a"))
		}
		if n := h.lists.Load() - before; n != 0 {
			t.Errorf("the list was read %d times again", n)
		}
	})
}

func TestUnknownToolNamesTheNearest(t *testing.T) {
	inPinWorld(t, nil, []string{described("search_issues", "x"), described("create_issue", "x")}, func(w *pinWorld) {
		err := w.call("serch_issues")
		if !errors.Is(err, host.ErrUnknownTool) || err.Error() != `s has no tool named "serch_issues"; did you mean "search_issues"?` {
			t.Errorf("%v", err)
		}
		w.wait(time.Minute)
		lists := w.h.lists.Load()
		for range 10 {
			_ = w.call("serch_issues")
		}
		if n := w.h.lists.Load() - lists; n != 1 {
			t.Errorf("ten wrong names read the list %d times, want once", n)
		}
		// A tool that is new and was not announced is found all the same.
		w.wait(time.Minute)
		remembered := *w.h.cachedCatalog()
		w.h.setTools(described("search_issues", "x"), described("late", "x"))
		w.h.remember(remembered)
		w.want(w.call("late"), error(nil))
	})
}

// downStore fails every access while it is down.
type downStore struct {
	vault.Store
	down bool
}

func (s *downStore) Get(ctx context.Context, k vault.Key) (vault.Record, error) {
	if s.down {
		return vault.Record{}, vault.ErrUnavailable
	}
	return s.Store.Get(ctx, k)
}

func (s *downStore) Put(ctx context.Context, k vault.Key, data []byte, v int64) (vault.Record, error) {
	if s.down {
		return vault.Record{}, vault.ErrUnavailable
	}
	return s.Store.Put(ctx, k, data, v)
}

func TestPinsWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &downStore{Store: vault.NewMemory()}
		h := newFakeHost(described("a", "old"))
		g := newGate(h.line, store, nil)
		defer g.Close(t.Context())
		call := func(server string) error {
			_, err := g.Call(t.Context(), callOf(server, "a"))
			return err
		}
		if err := call("s"); err != nil {
			t.Fatal(err)
		}
		store.down = true
		time.Sleep(time.Minute)
		h.setTools(described("a", "old"), described("b", "new"))
		if err := call("s"); err != nil {
			t.Errorf("calls do not go on: %v", err)
		}
		time.Sleep(time.Minute)
		h.setTools(described("a", "changed"))
		if err := call("s"); !errors.Is(err, ErrSchemaChanged) {
			t.Errorf("a change while the store is away: %v", err)
		}
		if err := call("never-seen"); !errors.Is(err, vault.ErrUnavailable) {
			t.Errorf("a server without a pin: %v", err)
		}
	})
}

func TestPinsWriteOncePerList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := vault.NewMemory()
		changes, err := store.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer changes.Close()
		var tools []string
		for i := range 200 {
			tools = append(tools, described(fmt.Sprint("tool", i), "x"))
		}
		h := newFakeHost(tools...)
		g := newGate(h.line, store, nil)
		defer g.Close(t.Context())
		for range 20 {
			if _, err := g.Call(t.Context(), callOf("s", "tool7")); err != nil {
				t.Fatal(err)
			}
		}
		changes.Close()
		n := 0
		for range changes.All(t.Context()) {
			n++
		}
		if n != 1 {
			t.Errorf("%d writes for 200 tools and 20 calls, want 1", n)
		}
	})
}

// lanesHost remembers another catalog for connections of a session.
type lanesHost struct {
	*fakeHost
	lane host.Catalog
}

func (h *lanesHost) Cached(k host.Key) (host.Catalog, bool) {
	if k.Lane != "" {
		return h.lane, true
	}
	return h.fakeHost.Cached(k)
}

// TestSessionsDoNotLagBehindPins: a session's own connection may not have heard yet
// that a tool has changed, when the gate already knows.
func TestSessionsDoNotLagBehindPins(t *testing.T) {
	h := &lanesHost{fakeHost: newFakeHost(simpleTool("echo"))}
	g := openGate(t, h, vault.NewMemory(), nil)
	k := Key{Server: "s", Lane: "one"}
	if _, err := g.Tools(t.Context(), Caller{}, Key{Server: "s"}); err != nil {
		t.Fatal(err)
	}
	h.lane = *h.cachedCatalog()
	h.lane.Tools = append(slices.Clone(h.lane.Tools), []byte(simpleTool("own")))
	h.setTools(strings.Replace(simpleTool("echo"), "does", "hides", 1))
	if _, err := g.Tools(t.Context(), Caller{}, Key{Server: "s"}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Call(t.Context(), Call{Key: k, Tool: "echo"}); !errors.Is(err, ErrSchemaChanged) {
		t.Errorf("a changed tool is called in a session: %v", err)
	}
	if _, err := g.Call(t.Context(), Call{Key: k, Tool: "own"}); err != nil {
		t.Errorf("a tool of the session alone: %v", err)
	}
	if _, err := g.Call(t.Context(), Call{Key: k, Tool: "echo"}); !errors.Is(err, ErrSchemaChanged) {
		t.Errorf("a changed tool is called afterwards: %v", err)
	}
}

func TestLockSeedsPins(t *testing.T) {
	l, err := pins.NewLock(map[string][][]byte{"s": {[]byte(described("a", "agreed")), []byte(described("b", "agreed"))}})
	if err != nil {
		t.Fatal(err)
	}
	store := vault.NewMemory()
	h := newFakeHost(described("a", "agreed"), described("b", "other"), described("c", "extra"))
	g := openGate(t, h, store, &Options{Lock: l})
	for tool, blocked := range map[string]bool{"a": false, "b": true, "c": false} {
		if _, err := g.Call(t.Context(), callOf("s", tool)); (err != nil) != blocked {
			t.Errorf("%s: %v", tool, err)
		}
	}
	list, err := g.Pins("").List(t.Context())
	if err != nil || len(list) != 3 || list[1].State != pins.StateChanged || list[2].State != pins.StateNew {
		t.Errorf("%+v, %v", list, err)
	}
	// From the pins back to a lock: what was agreed, and what came on top.
	again, err := g.Pins("").Lock(t.Context(), "s")
	if err != nil || len(again.Servers["s"]) != 3 || again.Servers["s"]["b"].Hash != l.Servers["s"]["b"].Hash {
		t.Errorf("%+v, %v", again, err)
	}
	current, err := g.Pins("").Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f := l.Verify(current); len(f) != 2 {
		t.Errorf("findings %v, want b changed and c new", f)
	}
}
