package torture

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/vault"
)

// poisons are the ways in which the bad server is bad: switches of the fake server,
// and "legacy" for one that speaks the legacy protocol only.
var poisons = append([]poison{
	{"silent", false},
	{"crash-loop=3", false},
	{"exit-on-start", false},
	{"garbage=200", false},
	{"bigline=40", false},
	{"stderrflood=256", false},
	{"wrongid", false},
	{"dup", false},
	{"unsolicited=300", false},
	{"slowbyte=5", false},
	{"notification-flood=2000", false},
	{"halfclose", false},
	{"loop", false},
	{"hang-after-headers", true},
	{"http-status=503", true},
	{"sse-drop", true},
	{"html", true},
	// Floods, which try to use up memory, goroutines and descriptors.
	{"legacy ping-flood=2000 hold-answers", true},
	{"legacy ping-flood=2000;on=GET hold-answers", true},
	{"legacy ping-flood=20000 deaf", false},
	{"legacy ask-flood=2000", false},
	{"legacy ask-flood=2000 hold-answers", true},
	{"legacy change-flood=5000", true},
	{"legacy change-flood=5000", false},
	{"legacy push-drop event-ids=1", true},
	{"unknown-flood=5000", false},
	{"list-bomb=512", true},
	{"list-bomb=512", false},
	{"legacy big-session-id=200", true},
}, definitionPoisons...)

// poison is one way to be bad.
type poison struct {
	sw   string
	http bool
}

const (
	healthyServers = 19
	maxMemory      = 256 << 20 // that all servers and callers take together
	maxDescriptors = 400       // of both ends of all connections, beyond those at the start
	// maxDescriptorsBeside is the same where other promises run beside this one.
	maxDescriptorsBeside = 4000
)

// poisoned calls healthy servers beside one that is bad in every way in turn: they
// lose no call, no answer reaches the wrong caller, and memory and descriptors stay
// bounded.
func poisoned(t *trial) error {
	var urls []string
	for i := range healthyServers {
		s := fake.New(&fake.Options{Name: fmt.Sprint("good", i), Ledger: fake.DiscardLedger()})
		url, stop, err := s.Listen()
		if err != nil {
			return err
		}
		defer stop()
		defer s.Close()
		urls = append(urls, url+"/mcp")
	}
	each := t.goal(3, 300)
	p99, err := t.beside(urls, nil, each*2)
	if err != nil {
		return err
	}
	alone := p99
	watch := startWatch() // the program may have done something else until now
	defer watch.stop()
	var worst time.Duration
	ways := 0
	for _, i := range t.order(len(poisons), t.goal(6, len(poisons))) {
		if !t.on() {
			break
		}
		bad, stop, err := t.poison(poisons[i].sw, poisons[i].http)
		if err != nil {
			return err
		}
		p99, err = t.beside(urls, &bad, each)
		stop()
		if err != nil {
			return err
		}
		worst = max(worst, p99)
		ways++
	}
	t.count("ways to be bad", ways)
	t.count("wrong answers or failures", 0)
	t.count("µs p99 of the healthy alone", int(alone.Microseconds()))
	t.count("µs p99 beside the worst", int(worst.Microseconds()))
	watch.stop()
	t.count("MiB in use at most", int(watch.memory>>20))
	t.count("descriptors at most", watch.descriptors)
	if taken := watch.memory - watch.memoryBefore; taken > maxMemory {
		t.breaks("%d MiB more were in use", taken>>20)
	}
	if more := watch.descriptors - watch.descriptorsBefore; more > t.goal(maxDescriptorsBeside, maxDescriptors) {
		t.breaks("%d descriptors more were open", more)
	}
	return nil
}

// order returns k of the numbers below n, in an order from the seed.
func (t *trial) order(n, k int) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rng.Perm(n)[:k]
}

// poison is a bad server.
func (t *trial) poison(sw string, http bool) (config.Server, func(), error) {
	opt := &fake.Options{Name: "bad", Ledger: fake.DiscardLedger()}
	args := []string{"fake", "--name", "bad"}
	for _, one := range strings.Fields(sw) {
		if one == "legacy" {
			opt.Versions = []string{mcp.LatestLegacy}
			args = append(args, "--versions", mcp.LatestLegacy)
			continue
		}
		opt.Switches = append(opt.Switches, one)
		args = append(args, "--switch", one)
	}
	srv := config.Server{
		Name: "bad", Transport: config.TransportStdio, Command: t.self, Args: args,
		Timeouts: config.Timeouts{Connect: 2 * time.Second, List: time.Second, Call: 300 * time.Millisecond},
	}
	stop := func() {}
	if http {
		s := fake.New(opt)
		url, end, err := s.Listen()
		if err != nil {
			return srv, nil, err
		}
		stop = func() { s.Close(); end() }
		srv.Transport, srv.Command, srv.Args, srv.URL = config.TransportHTTP, "", nil, url+"/mcp"
	}
	return srv, stop, nil
}

// open makes a host with servers and nothing else.
func (t *trial) open(servers []config.Server) (*app.App, error) {
	for i := range servers {
		servers[i] = servers[i].WithDefaults()
	}
	return app.Open(t.ctx, &app.Options{
		Config: &config.Config{Usher: config.DefaultSettings(), Servers: servers}, Store: vault.NewMemory(), Executable: t.exe,
		Load: config.LoadOptions{System: config.System{Home: t.dir, Workdir: t.dir, LookupEnv: func(string) (string, bool) { return "", false }}},
	})
}

// beside calls each healthy server that many times while others annoy the bad one,
// and returns the 99th percentile of what a call took.
func (t *trial) beside(urls []string, bad *config.Server, each int) (time.Duration, error) {
	var servers []config.Server
	for i, url := range urls {
		servers = append(servers, config.Server{Name: fmt.Sprint("good", i), Transport: config.TransportHTTP, URL: url})
	}
	if bad != nil {
		servers = append(servers, *bad)
	}
	h, err := t.open(servers)
	if err != nil {
		return 0, err
	}
	defer func() { _ = h.Close() }() // bad servers do not end well
	ctx, stop := context.WithCancel(t.ctx)
	var victims, callers sync.WaitGroup
	if bad != nil {
		for range 2 {
			victims.Go(func() {
				for ctx.Err() == nil {
					_, _ = h.Call(ctx, "bad", "echo", []byte(`{"mark":"bad"}`), &app.CallOptions{Answer: hesitate}) // it may do as it likes
					pause(ctx, time.Millisecond)                                                                    // a refusal costs nothing: a client that spun on it would be the bad one
				}
			})
		}
	}
	var mu sync.Mutex // guards took
	var took []time.Duration
	for i := range urls {
		callers.Go(func() {
			mine := t.healthy(h, fmt.Sprint("good", i), each)
			mu.Lock()
			took = append(took, mine...)
			mu.Unlock()
		})
	}
	callers.Wait()
	stop()
	victims.Wait()
	t.count("calls to healthy servers", len(took))
	slices.Sort(took)
	if len(took) == 0 {
		return 0, nil
	}
	return took[len(took)*99/100], nil
}

// hesitate answers questions of a server as a person does who is not there.
func hesitate(ctx context.Context, _ string, _ []byte) ([]byte, *mcp.Error) {
	pause(ctx, time.Second)
	return []byte(`{"action":"cancel"}`), nil
}

// healthy calls one server and checks the answers.
func (t *trial) healthy(h *app.App, server string, n int) (took []time.Duration) {
	for i := 0; i < n+1 && t.ctx.Err() == nil; i++ {
		mark := fmt.Sprintf("%s/%d", server, i)
		begin := time.Now()
		result, err := h.Call(t.ctx, server, "echo", []byte(`{"mark":"`+mark+`"}`), nil)
		if t.ctx.Err() == nil && (err != nil || !strings.Contains(string(result), `"`+mark+`"`)) {
			t.breaks("%s got %.100s, %v", mark, result, err)
			t.count("wrong answers or failures", 1)
			return took
		}
		if i > 0 { // the first one connects
			took = append(took, time.Since(begin))
		}
		// What is measured is the neighbour, not how long the queue for a processor is.
		pause(t.ctx, 5*time.Millisecond)
	}
	return took
}

// pause waits a little, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
