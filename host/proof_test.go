package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/upstream"
)

// long is the size of a proof: USHER_PROOF=1 asks for the whole one.
func long(whole, everyday int) int {
	if os.Getenv("USHER_PROOF") != "" {
		return whole
	}
	return everyday
}

// realHost has real connections, one transport and children that end quickly.
func realHost(t *testing.T, opt Options) *Host {
	t.Helper()
	tr := upstream.NewTransport()
	opt.Transport, opt.Executable, opt.Connection = tr, process.Self(), children()
	h := New(&opt)
	t.Cleanup(func() {
		h.Close()
		tr.CloseIdleConnections()
	})
	return h
}

// fakeURL serves a fake in this process.
func fakeURL(t *testing.T, opt *fake.Options) (*fake.Server, string) {
	t.Helper()
	s := fake.New(opt)
	url, stop, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s, url + "/mcp"
}

func urlServer(name, url string) config.Server {
	lazy := true
	return config.Server{Name: name, URL: url, Lazy: &lazy, KeepAlive: config.DefaultKeepAlive}.WithDefaults()
}

// badKinds are the ways in which the twentieth server is bad.
var badKinds = []struct {
	name, sw string // sw: one switch or several, separated by spaces
	http     bool
}{
	{"silent", "silent", false},
	{"crash loop", "crash-loop=3", false},
	{"exits at once", "exit-on-start", false},
	{"garbage", "garbage=200", false},
	{"a line of 40 MB", "bigline=40", false},
	{"40 MB of garbage", "hugegarbage=40", false},
	{"stderr flood", "stderrflood=256", false},
	{"wrong ids", "wrongid", false},
	{"ids of another type", "idtype", false},
	{"every answer twice", "dup", false},
	{"answers to nobody", "unsolicited=300", false},
	{"byte by byte", "slowbyte=5", false},
	{"notification flood", "notification-flood=2000", false},
	{"dies in the middle of an answer", "halfclose", false},
	{"endless pages", "loop", false},
	{"hangs after the headers", "hang-after-headers", true},
	{"HTTP 503", "http-status=503", true},
	{"drops its streams", "sse-drop", true},
	{"HTML", "html", true},
	{"legacy: ping flood, accepts no answers", "ping-flood=2000 hold-answers", true},
	{"legacy: ping flood on its stream, accepts no answers", "ping-flood=2000;on=GET hold-answers", true},
	{"legacy: ping flood, does not read", "ping-flood=20000 deaf", false},
	{"legacy: question flood", "ask-flood=2000", false},
	{"legacy: question flood, accepts no answers", "ask-flood=2000 hold-answers", true},
	{"legacy: changes its lists all the time", "change-flood=5000", true},
	{"unknown notifications", "unknown-flood=5000", false},
	{"a list without end", "list-bomb=512", true},
	{"a list without end from a child", "list-bomb=512", false},
	{"legacy: ends its stream at once", "push-drop event-ids=1", true},
}

// badServer is a server that is bad in one of the ways.
func badServer(t *testing.T, kind, sw string, http bool) config.Server {
	opt := &fake.Options{Name: "bad", Ledger: fake.DiscardLedger(), Switches: strings.Fields(sw)}
	var args []string
	if strings.HasPrefix(kind, "legacy: ") {
		opt.Versions = []string{mcp.LatestLegacy}
		args = []string{"--versions", mcp.LatestLegacy}
	}
	if http {
		_, url := fakeURL(t, opt)
		return urlServer("bad", url)
	}
	for _, one := range opt.Switches {
		args = append(args, "--switch", one)
	}
	return childServer(t, "bad", args...)
}

// One bad server of twenty: the nineteen lose no call, no answer reaches the wrong
// caller, and memory stays bounded.
func TestOneBadServer(t *testing.T) {
	h := realHost(t, Options{MaxConnected: 20})
	var healthy []string
	for i := range 19 {
		name := fmt.Sprintf("good%02d", i)
		healthy = append(healthy, name)
		if i%4 == 0 {
			mustSpawn(t, h, childServer(t, name))
			continue
		}
		_, url := fakeURL(t, &fake.Options{Name: name, Ledger: fake.DiscardLedger()})
		mustSpawn(t, h, urlServer(name, url))
	}
	peak := watchMemory(t)
	each := long(100_000, 10_000) / len(badKinds) / len(healthy)
	for _, bad := range badKinds {
		t.Run(bad.name, func(t *testing.T) {
			srv := badServer(t, bad.name, bad.sw, bad.http)
			srv.Timeouts = config.Timeouts{Connect: 2 * time.Second, List: time.Second, Call: 300 * time.Millisecond}
			srv.Supervision.CircuitThreshold, srv.Supervision.MaxRestarts = 1000, 1000
			h.Apply(t.Context(), withServer(h, srv))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var victims, callers sync.WaitGroup
			var abused atomic.Int64
			for i := range 3 {
				victims.Go(func() { abused.Add(annoy(ctx, t, h, i)) })
			}
			for _, name := range healthy {
				callers.Go(func() { callMany(t, h, name, bad.name, each) })
			}
			callers.Wait()
			stop()
			victims.Wait()
			if abused.Load() == 0 {
				t.Error("the bad server was never asked")
			}
		})
	}
	if top := peak(); top > 256<<20 {
		t.Errorf("%d MiB in use at the peak", top>>20)
	} else {
		t.Logf("%d calls to healthy servers, %d MiB in use at the peak", each*len(healthy)*len(badKinds), top>>20)
	}
}

// withServer is the present configuration with one server more, or another.
func withServer(h *Host, srv config.Server) *config.Config {
	c := &config.Config{Servers: []config.Server{srv}}
	for _, name := range h.Names() {
		if s, ok := h.Server(name); ok && name != srv.Name {
			c.Servers = append(c.Servers, s)
		}
	}
	return c
}

// annoy asks the bad server again and again. What it answers does not matter,
// unless it is somebody else's answer.
func annoy(ctx context.Context, t *testing.T, h *Host, caller int) (calls int64) {
	k := Key{Server: "bad"}
	for i := 0; ctx.Err() == nil; i++ {
		if caller == 0 && i%5 == 4 {
			_, _ = h.Tools(ctx, k)
			continue
		}
		mark := fmt.Sprintf("bad/%d/%d", caller, i)
		calls++
		result, err := h.Do(ctx, k, callTool("echo", map[string]string{"mark": mark}))
		if err == nil && strings.Contains(string(result), "mark") && !strings.Contains(string(result), mark+`"`) {
			t.Errorf("a wrong answer for %s: %.100s", mark, result)
		}
	}
	return calls
}

func callMany(t *testing.T, h *Host, name, round string, n int) {
	var wg sync.WaitGroup
	for lane := range 2 {
		wg.Go(func() {
			for i := lane; i < n; i += 2 {
				mark := fmt.Sprintf("%s/%s/%d", name, round, i)
				result, err := h.Do(t.Context(), Key{Server: name}, callTool("echo", map[string]string{"mark": mark}))
				if err != nil || !strings.Contains(string(result), `"structuredContent":{"mark":"`+mark+`"}`) {
					t.Errorf("%s got %.100s, %v", mark, result, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// watchMemory samples what the Go heap and stacks hold until peak is called.
func watchMemory(t *testing.T) (peak func() uint64) {
	var top atomic.Uint64
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			top.Store(max(top.Load(), m.HeapInuse+m.StackInuse))
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() uint64 {
		stop()
		<-done
		return top.Load()
	}
}

// A server that dies while it works on a call: what has side effects runs at most
// once, and the caller is told that nobody knows whether it did.
func TestCrashDuringCall(t *testing.T) {
	t.Run("http", func(t *testing.T) {
		// Each account has a connection of its own, so that no crash waits for the
		// backoff of another.
		for i, sw := range []string{"halfclose=headers", "halfclose=body", "sse-drop"} {
			s, url := fakeURL(t, &fake.Options{Name: "bank", Switches: []string{sw + ";on=tools/call"}})
			h := realHost(t, Options{})
			srv := urlServer("bank", url)
			srv.Trust = i%2 == 0 // the tool does not claim to be harmless: no difference
			mustSpawn(t, h, srv)
			crash(t, h, 300, s.Ledger, 1, func(id string) Request {
				return callTool("pay", map[string]string{"id": id})
			})
		}
		for _, when := range []string{"before", "after"} {
			s, url := fakeURL(t, &fake.Options{Name: "bank"})
			h := realHost(t, Options{})
			mustSpawn(t, h, urlServer("bank", url))
			crash(t, h, 50, s.Ledger, map[string]int{"after": 1}[when], func(id string) Request {
				return callTool("crash", map[string]string{"id": id, "when": when})
			})
		}
	})
	t.Run("stdio", func(t *testing.T) {
		ledger := filepath.Join(t.TempDir(), "ledger")
		h := realHost(t, Options{MaxConnected: 4})
		srv := childServer(t, "bank", "--ledger", ledger)
		srv.Trust = true
		mustSpawn(t, h, srv)
		read := func() *fake.Ledger {
			l, err := fake.ReadLedger(ledger)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		crash(t, h, long(1000, 24), read, 1, func(id string) Request {
			return callTool("crash", map[string]string{"id": id, "when": "after"})
		})
	})
}

func crash(t *testing.T, h *Host, n int, ledger func() *fake.Ledger, want int, req func(id string) Request) {
	t.Helper()
	var wg sync.WaitGroup
	next := atomic.Int64{}
	for range 4 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				id := fmt.Sprintf("call-%d", i)
				_, err := h.Do(t.Context(), Key{Server: "bank", Account: id}, req(id))
				if !errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(err.Error(), "outcome is unknown") {
					t.Errorf("%s: %v", id, err)
				}
				h.Release(Key{Server: "bank", Account: id})
			}
		})
	}
	wg.Wait()
	executed := map[string]int{}
	for _, e := range ledger().Events(fake.EventExecuted) {
		executed[e.Detail]++
	}
	for i := 1; i <= n; i++ {
		if id := fmt.Sprintf("call-%d", i); executed[id] != want {
			t.Errorf("%s was carried out %d times, want %d", id, executed[id], want)
		}
	}
}
