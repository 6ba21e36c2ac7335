package surface

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// hearing is an agent that listens.
type hearing struct {
	t     testing.TB
	heard chan mcp.Message
	stop  func()
}

func listen(t testing.TB, v View, a Agent, want Subscription) *hearing {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	h := &hearing{t: t, heard: make(chan mcp.Message, 100)}
	done := make(chan error, 1)
	go func() { done <- v.Listen(ctx, a, want, func(m mcp.Message) { h.heard <- m }) }()
	h.stop = func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("listen ended with %v", err)
		}
	}
	t.Cleanup(func() {
		if ctx.Err() == nil {
			h.stop()
		}
	})
	return h
}

// next waits for one message.
func (h *hearing) next() mcp.Message {
	h.t.Helper()
	select {
	case m := <-h.heard:
		return m
	case <-time.After(20 * time.Second):
		h.t.Fatal("nothing was heard")
		return mcp.Message{}
	}
}

// listening waits until so many listen.
func (w *rig) listening(t testing.TB, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		w.listeners.mu.Lock()
		have := len(w.listeners.all)
		w.listeners.mu.Unlock()
		if have >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d listeners, want %d", have, n)
		}
		<-time.After(time.Millisecond)
	}
}

// TestListChangesAreTold changes the tools of servers of both eras and wants each
// view that shows them to tell so, once, and no other.
func TestListChangesAreTold(t *testing.T) {
	for _, versions := range [][]string{modernOnly, legacyOnly} {
		t.Run(versions[0], func(t *testing.T) {
			one, fk := serve(t, "one", fake.Options{Versions: versions, Tools: []fake.Tool{simple("one", "a", "")}})
			two, _ := serve(t, "two", fake.Options{Tools: []fake.Tool{simple("two", "a", "")}})
			w := start(t, []config.Server{one, two}, options{Options: Options{Profiles: map[string]Profile{"two": {Servers: []string{"two"}}}}}, nil)
			do(t, w.Direct(), modernAgent, mcp.MethodToolsList, `{}`)
			all := Subscription{Tools: true, Prompts: true, Resources: true}
			other, _ := w.Profile("two")
			direct := listen(t, w.Direct(), modernAgent, all)
			single := listen(t, single1(t, w, "one"), legacyAgent, all)
			deaf := listen(t, w.Direct(), modernAgent, Subscription{Prompts: true})
			elsewhere := listen(t, other, legacyAgent, all)
			metaView := listen(t, w.Meta(), legacyAgent, all)
			w.listening(t, 5)
			if mcp.Stateless(versions[0]) {
				awaitHearing(t, fk)
			}
			for i := range 5 { // five changes at once are one
				fk.SetTools([]fake.Tool{simple("one", "a", ""), simple("one", fmt.Sprint("b", i), "")})
			}
			if m := direct.next(); m.Method != mcp.MethodNotifyTools {
				t.Errorf("direct: %s", m.Method)
			}
			if m := single.next(); m.Method != mcp.MethodNotifyTools {
				t.Errorf("single: %s", m.Method)
			}
			for _, h := range []*hearing{deaf, elsewhere, metaView} {
				select {
				case m := <-h.heard:
					t.Errorf("a view that did not change says %s", m.Raw)
				default:
				}
			}
			waitForList(t, w, []string{"one__a", "one__b4", "two__a"})
		})
	}
}

// awaitHearing waits until a modern server can tell of changes: somebody listens.
func awaitHearing(t *testing.T, fk *fake.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := fk.Ledger().WaitFor(ctx, func(e fake.Entry) bool { return e.Event == fake.EventListening }); err != nil {
		t.Fatal("nobody listens to the server")
	}
}

func waitForList(t *testing.T, w *rig, want []string) {
	t.Helper()
	var got []string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		got = names(do(t, w.Direct(), modernAgent, mcp.MethodToolsList, `{}`), "tools", "name")
		if cmp.Equal(want, got) {
			return
		}
	}
	t.Errorf("(-want +got)\n%s", cmp.Diff(want, got))
}

// TestResourceUpdates subscribes in the way of each era to resources of servers of
// each, through views that keep and that change the address.
func TestResourceUpdates(t *testing.T) {
	for _, versions := range [][]string{modernOnly, legacyOnly} {
		for _, agent := range []Agent{modernAgent, legacyAgent} {
			for _, view := range []string{"single", "direct"} {
				t.Run(fmt.Sprint(versions[0], " for ", agent.Version, " ", view), func(t *testing.T) {
					one, fk := serve(t, "one", fake.Options{Versions: versions})
					two, _ := serve(t, "two", fake.Options{Versions: versions})
					w := start(t, []config.Server{one, two}, options{}, nil)
					v, uri := w.Direct(), "usher://one/fake://readme"
					if view == "single" {
						v, uri = single1(t, w, "one"), "fake://readme"
					}
					var h *hearing
					if mcp.Stateless(agent.Version) {
						h = listen(t, v, agent, Subscription{URIs: []string{uri}})
					} else {
						h = listen(t, v, agent, Subscription{})
						w.listening(t, 1)
						do(t, v, agent, mcp.MethodSubscribe, `{"uri":"`+uri+`"}`)
					}
					m := touchUntilHeard(t, fk, h)
					if want := `{"uri":"` + uri + `"}`; m.Method != mcp.MethodNotifyUpdated || string(m.Params) != want {
						t.Errorf("%s %s, want %s", m.Method, m.Params, want)
					}
					if !mcp.Stateless(agent.Version) {
						do(t, v, agent, mcp.MethodUnsubscribe, `{"uri":"`+uri+`"}`)
					}
					v.Close(agent)
				})
			}
		}
	}
}

// touchUntilHeard changes a resource until somebody hears of it: when a subscription
// has reached the server nobody is told.
func touchUntilHeard(t *testing.T, fk *fake.Server, h *hearing) mcp.Message {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		fk.Touch("fake://readme")
		select {
		case m := <-h.heard:
			return m
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("no update was heard")
	return mcp.Message{}
}

// TestLogsReachTheirSession wants log messages of an older server to reach the
// session that asked for them, and nobody else.
func TestLogsReachTheirSession(t *testing.T) {
	srv, _ := serve(t, "s", fake.Options{Versions: legacyOnly})
	w := start(t, []config.Server{srv}, options{}, nil)
	v := single1(t, w, "s")
	mine, other := legacyAgent, legacyAgent
	other.Lane = "session-2"
	h, silent := listen(t, v, mine, Subscription{}), listen(t, v, other, Subscription{})
	w.listening(t, 2)
	do(t, v, mine, mcp.MethodSetLevel, `{"level":"info"}`)
	k := policy.Key{Principal: local, Server: "s", Lane: mine.Lane}
	said := notification(mcp.MethodNotifyMessage, []byte(`{"level":"info","data":"hi"}`))
	w.Surface.Notified(k, said)
	if m := h.next(); string(m.Raw) != string(said.Raw) {
		t.Errorf("heard %s", m.Raw)
	}
	// While one request is in flight it belongs to that.
	during := 0
	_, err := v.Do(t.Context(), mine, mcp.Request{
		Method: mcp.MethodToolsCall, Params: []byte(`{"name":"slow","arguments":{"ms":1},"_meta":{"progressToken":"p"}}`),
		OnNotification: func(m mcp.Message) {
			switch m.Method {
			case mcp.MethodNotifyProgress:
				w.Surface.Notified(k, said)
			case mcp.MethodNotifyMessage:
				during++
			}
		},
	})
	if err != nil || during != 1 {
		t.Errorf("%d messages in the request, %v", during, err)
	}
	for _, one := range []*hearing{h, silent} {
		select {
		case m := <-one.heard:
			t.Errorf("also heard: %s", m.Raw)
		default:
		}
	}
}

// TestLogsOfModernRequests wants a modern request to hear an older server's log
// messages if it asked for them, and only then.
func TestLogsOfModernRequests(t *testing.T) {
	srv, fk := serve(t, "s", fake.Options{Versions: legacyOnly})
	w := start(t, []config.Server{srv}, options{}, nil)
	v := single1(t, w, "s")
	do(t, v, modernAgent, mcp.MethodToolsList, `{}`)
	for _, tt := range []struct {
		meta string
		want int
	}{{`{}`, 0}, {`{"io.modelcontextprotocol/logLevel":"debug"}`, 2}, {`{}`, 0}} {
		heard := 0
		_, err := v.Do(t.Context(), modernAgent, mcp.Request{
			Method: mcp.MethodToolsCall, Params: []byte(`{"name":"log","arguments":{"count":2},"_meta":` + tt.meta + `}`),
			OnNotification: func(m mcp.Message) { heard++ },
		})
		if err != nil || heard != tt.want {
			t.Errorf("%s: %d messages, want %d, %v", tt.meta, heard, tt.want, err)
		}
	}
	if n := fk.Ledger().Count(mcp.MethodSetLevel); n != 1 {
		t.Errorf("the level was set %d times", n)
	}
}

// TestLoginShowsTools wants the tools of a server to be told of as soon as a login
// has made them visible, without a restart of the agent.
func TestLoginShowsTools(t *testing.T) {
	srv, _ := serve(t, "s", fake.Options{Tools: []fake.Tool{simple("s", "a", "")}})
	auth := &switchedLogin{}
	w := start(t, []config.Server{srv}, options{}, func(_ *config.Config, o *host.Options) { o.Auth = auth })
	if got := names(do(t, w.Direct(), modernAgent, mcp.MethodToolsList, `{}`), "tools", "name"); len(got) != 0 {
		t.Fatalf("before the login: %v", got)
	}
	h := listen(t, w.Direct(), modernAgent, Subscription{Tools: true})
	w.listening(t, 1)
	auth.in.Store(true)
	w.bus.Publish(event.GrantChanged{Header: event.Header{Server: "s"}, Change: event.GrantStored})
	if m := h.next(); m.Method != mcp.MethodNotifyTools {
		t.Errorf("heard %s", m.Method)
	}
	if got := do(t, w.Direct(), modernAgent, mcp.MethodToolsCall, `{"name":"s__a"}`); !strings.Contains(got, "s/a") {
		t.Errorf("after the login: %s", got)
	}
}
