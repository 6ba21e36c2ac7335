package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The contestants' names in rows.
const (
	byUsher = "usher"
	byBare  = "bare proxy"
	bySDK   = "SDK proxy"
	noProxy = "no proxy"
)

func eras() []string { return []string{"modern", "legacy"} }

// clientCounts are how many clients call at once.
func clientCounts() []int { return []int{1, 16, 64} }

// arena is one echo server and everybody who stands before it.
type arena struct {
	echo     *child
	all      []contestant
	children []*child
}

// newArena starts the contestants by name.
func (l *lab) newArena(ctx context.Context, legacy bool, names ...string) (*arena, error) {
	var args []string
	if legacy {
		args = []string{"-legacy"}
	}
	echo, err := l.startEcho(ctx, args...)
	if err != nil {
		return nil, err
	}
	a := &arena{echo: echo, children: []*child{echo}}
	for _, name := range names {
		c := contestant{name: name, path: "mcp"}
		switch name {
		case noProxy:
			c.child = echo
		case byBare:
			c.child, err = l.startRole(ctx, nil, "child-bare", echo.url)
		case bySDK:
			c.child, err = l.startRole(ctx, nil, append([]string{"child-sdk", echo.url}, args...)...)
		case byUsher:
			c.path = "servers/echo/mcp"
			var home string
			if home, err = l.home(map[string]string{"echo": at(echo.url + "mcp")}); err == nil {
				c.child, err = l.startUsher(ctx, home)
			}
		}
		if err != nil {
			a.close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		a.all = append(a.all, c)
		if c.child != echo {
			a.children = append(a.children, c.child)
		}
	}
	return a, nil
}

func (a *arena) close() { stopAll(a.children) }

// score is what one contestant did in one round.
type score struct {
	rate          float64 // calls a second
	p50, p95, p99 float64 // microseconds
	cpu           float64 // microseconds a call
	mallocs       float64 // a call
	bytes         float64 // a call
}

// round lets one contestant work for a while.
func round(ctx context.Context, c contestant, ld load, d time.Duration) (score, error) {
	ld.url, ld.paths = c.url, orPaths(ld.paths, c.path)
	before, err := c.measured(ctx)
	if err != nil {
		return score{}, err
	}
	lctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	began := time.Now()
	took, err := ld.run(lctx)
	span := time.Since(began)
	if err != nil {
		return score{}, fmt.Errorf("%s: %w", c.name, err)
	}
	after, err := c.measured(ctx)
	if err != nil {
		return score{}, err
	}
	n := float64(max(len(took), 1))
	us := func(q float64) float64 { return float64(quantile(took, q).Nanoseconds()) / 1e3 }
	return score{
		rate: n / span.Seconds(), p50: us(0.5), p95: us(0.95), p99: us(0.99),
		cpu: (after.CPU - before.CPU) * 1e6 / n, mallocs: float64(after.Mallocs-before.Mallocs) / n,
		bytes: float64(after.Bytes-before.Bytes) / n,
	}, nil
}

// measured is what a contestant has used so far; of those who do not tell, only the
// processor time is known.
func (c *child) measured(ctx context.Context) (figures, error) {
	if c.aside != "" {
		return c.figures(ctx)
	}
	cpu, err := cpuOf(c.proc.Pid())
	return figures{CPU: cpu}, err
}

func orPaths(paths []string, path string) []string {
	if len(paths) > 0 {
		return paths
	}
	return []string{path}
}

// duel measures contestants alternately, each round beginning with another, and
// returns the scores of each by name.
func (l *lab) duel(ctx context.Context, all []contestant, ld load, rounds int, d time.Duration) (map[string][]score, error) {
	for _, c := range all { // warm up
		if _, err := round(ctx, c, ld, d/4); err != nil {
			return nil, err
		}
	}
	out := map[string][]score{}
	for i := range rounds {
		for k := range all {
			c := all[(i+k)%len(all)]
			s, err := round(ctx, c, ld, d)
			if err != nil {
				return nil, err
			}
			out[c.name] = append(out[c.name], s)
		}
	}
	return out, nil
}

// of is the median over rounds of one figure.
func of(scores []score, get func(score) float64) float64 {
	values := make([]float64, len(scores))
	for i, s := range scores {
		values[i] = get(s)
	}
	return median(values)
}

// calls measures tools/call in both eras at growing numbers of clients.
func calls(ctx context.Context, l *lab) ([]row, error) {
	var rows []row
	for _, era := range eras() {
		a, err := l.newArena(ctx, era == "legacy", byUsher, byBare, bySDK, noProxy)
		if err != nil {
			return rows, err
		}
		for _, n := range clientCounts() {
			fmt.Fprintf(l.log, "calls: %s, %d clients\n", era, n)
			ld := load{legacy: era == "legacy", clients: n, size: 256, tool: "echo"}
			scores, err := l.duel(ctx, a.all, ld, pick(l, 9, 3), pick(l, time.Second, 400*time.Millisecond))
			if err == nil {
				err = l.profile(ctx, a.all[0], ld, fmt.Sprintf("%s-%d", era, n))
			}
			if err != nil {
				a.close()
				return rows, err
			}
			rows = append(rows, callRows(fmt.Sprintf("%s %d", era, n), scores)...)
		}
		even, err := l.sameRate(ctx, a, era)
		if err != nil {
			a.close()
			return rows, err
		}
		rows = append(rows, even...)
		a.close()
	}
	return rows, nil
}

// steadyRate is how many calls a second all clients together make in sameRate: what
// each contestant can do with ease.
const steadyRate = 2000

// sameRate compares usher and the bare proxy when both have the same to do. With
// clients that ask again at once, the faster one is asked more and its queue is as
// long, so that its slowest answers tell more about the machine than about it.
func (l *lab) sameRate(ctx context.Context, a *arena, era string) ([]row, error) {
	fmt.Fprintf(l.log, "calls: %s, %d a second\n", era, steadyRate)
	const clients = 16
	ld := load{legacy: era == "legacy", clients: clients, size: 256, tool: "echo", every: time.Second * clients / steadyRate}
	scores, err := l.duel(ctx, a.all[:2], ld, pick(l, 9, 3), pick(l, time.Second, 400*time.Millisecond))
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, m := range metrics() {
		if m.name == "p50" || m.name == "p99" || m.name == "CPU" {
			rows = append(rows, row{
				Part: "calls", Name: fmt.Sprintf("%s at %d/s %s over %s", era, steadyRate, m.name, byBare), Unit: "×",
				Value: of(scores[byUsher], m.get) / of(scores[byBare], m.get),
			})
		}
	}
	return rows, nil
}

// metrics are the figures of a score, as rows name them.
func metrics() []metric {
	return []metric{
		{"p50", "µs", func(s score) float64 { return s.p50 }},
		{"p95", "µs", func(s score) float64 { return s.p95 }},
		{"p99", "µs", func(s score) float64 { return s.p99 }},
		{"CPU", "µs", func(s score) float64 { return s.cpu }},
		{"calls/s", "1/s", func(s score) float64 { return s.rate }},
		{"allocations", "", func(s score) float64 { return s.mallocs }},
		{"bytes", "B", func(s score) float64 { return s.bytes }},
	}
}

type metric struct {
	name, unit string
	get        func(score) float64
}

// callRows tells the figures of all contestants, then usher's over the others'.
func callRows(at string, scores map[string][]score) []row {
	var rows []row
	for _, name := range []string{byUsher, byBare, bySDK, noProxy} {
		if scores[name] == nil {
			continue
		}
		for _, m := range metrics() {
			if v := of(scores[name], m.get); v > 0 {
				rows = append(rows, row{Part: "calls", Name: at + " " + name + " " + m.name, Value: v, Unit: m.unit})
			}
		}
	}
	ratio := func(to, figure string, bar float64) {
		i := slices.IndexFunc(metrics(), func(m metric) bool { return m.name == figure })
		get := metrics()[i].get
		rows = append(rows, row{
			Part: "calls", Name: at + " " + figure + " over " + to, Unit: "×", Bar: bar,
			Value: of(scores[byUsher], get) / of(scores[to], get),
		})
	}
	ratio(byBare, "CPU", 1.0)
	ratio(byBare, "p50", 1.0)
	ratio(byBare, "p99", 1.1)
	ratio(bySDK, "CPU", 0.2)
	return rows
}

// profile records where usher spends its time and memory, in a stretch of its own:
// recording costs, too.
func (l *lab) profile(ctx context.Context, c contestant, ld load, name string) error {
	if l.profiles == "" {
		return nil
	}
	seconds := pick(l, 10, 5)
	failed := make(chan error, 1)
	go func() {
		_, err := round(ctx, c, ld, time.Duration(seconds)*time.Second)
		failed <- err
	}()
	err := l.fetchProfile(ctx, c, fmt.Sprintf("profile?seconds=%d", seconds-2), name+".cpu.prof")
	if err == nil {
		err = l.fetchProfile(ctx, c, "allocs", name+".allocs.prof")
	}
	if err == nil {
		err = l.fetchProfile(ctx, c, "trace?seconds=1", name+".trace") // who waited for whom
	}
	return errors.Join(err, <-failed)
}

func (l *lab) fetchProfile(ctx context.Context, c contestant, what, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.aside+"/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	resp, err := aside.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.profiles, file), data, 0o644)
}
