package main

import (
	"context"
	"fmt"
	"time"
)

// large measures results of 64 KB.
func large(ctx context.Context, l *lab) ([]row, error) {
	a, err := l.newArena(ctx, false, byUsher, byBare)
	if err != nil {
		return nil, err
	}
	defer a.close()
	ld := load{clients: 16, size: 64 << 10, tool: "echo"}
	scores, err := l.duel(ctx, a.all, ld, pick(l, 9, 3), pick(l, time.Second, 400*time.Millisecond))
	if err == nil {
		err = l.profile(ctx, a.all[0], ld, "large")
	}
	if err != nil {
		return nil, err
	}
	return duelRows("large", scores, byUsher, byBare, 1.5), nil
}

// duelRows tells processor time and latency of two, and the one's over the other's.
func duelRows(part string, scores map[string][]score, one, other string, bar float64) []row {
	var rows []row
	for _, name := range []string{one, other} {
		for _, m := range metrics() {
			rows = append(rows, row{Part: part, Name: name + " " + m.name, Value: of(scores[name], m.get), Unit: m.unit})
		}
	}
	for _, m := range metrics() {
		if m.name == "CPU" || m.name == "p50" {
			r := row{Part: part, Name: m.name + " over " + other, Unit: "×", Value: of(scores[one], m.get) / of(scores[other], m.get)}
			if m.name == "CPU" {
				r.Bar = bar
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// The two ways to reach a server behind usher.
const (
	overStdio = "stdio upstream"
	overHTTP  = "HTTP upstream"
)

// stdio measures a server that is a child of usher against the same one over HTTP,
// and what a slow call means for others on the same child.
func stdio(ctx context.Context, l *lab) ([]row, error) {
	echo, err := l.startEcho(ctx)
	if err != nil {
		return nil, err
	}
	defer echo.stop()
	home, err := l.home(map[string]string{"echo": at(echo.url + "mcp"), "echo-child": program(l.echo, "-stdio")})
	if err != nil {
		return nil, err
	}
	usher, err := l.startUsher(ctx, home)
	if err != nil {
		return nil, err
	}
	defer usher.stop()
	child := contestant{overStdio, usher, "servers/echo-child/mcp"}
	both := []contestant{child, {overHTTP, usher, "servers/echo/mcp"}}
	ld := load{clients: 16, size: 256, tool: "echo"}
	rounds, d := pick(l, 9, 3), pick(l, time.Second, 400*time.Millisecond)
	scores, err := l.duel(ctx, both, ld, rounds, d)
	if err == nil {
		err = l.profile(ctx, child, ld, "stdio")
	}
	if err != nil {
		return nil, err
	}
	rows := duelRows("stdio", scores, overStdio, overHTTP, 1.2)
	slow, err := besideSlow(ctx, child, ld, rounds, d)
	return append(rows, row{Part: "stdio", Name: "p50 beside slow calls over without", Value: slow, Unit: "×", Bar: 1.2}), err
}

// besideSlow is the median of calls beside eight that take long on the same child,
// over the median without them.
func besideSlow(ctx context.Context, c contestant, ld load, rounds int, d time.Duration) (float64, error) {
	var with, without []float64
	for range rounds {
		s, err := round(ctx, c, ld, d)
		if err != nil {
			return 0, err
		}
		without = append(without, s.p50)
		sctx, stop := context.WithTimeout(ctx, d)
		failed := make(chan error, 1)
		go func() {
			slow := load{url: c.url, paths: []string{c.path}, clients: 8, size: 256, tool: "echo", wait: 300}
			_, err := slow.run(sctx)
			failed <- err
		}()
		s, err = round(ctx, c, ld, d)
		stop()
		if slowErr := <-failed; err == nil {
			err = slowErr
		}
		if err != nil {
			return 0, err
		}
		with = append(with, s.p50)
	}
	return median(with) / median(without), nil
}

// serverCounts are how many servers stand behind one usher.
func serverCounts() []int { return []int{1, 20, 100, 1000} }

// servers measures what a call costs when calls go to more and more servers in turn.
func servers(ctx context.Context, l *lab) ([]row, error) {
	// Each of two dozen processes works for little of the time. With lists that are good
	// for a minute as everywhere else, a thousand of them would be read two dozen times as
	// often for every call as in a process that works all the time.
	echo, err := l.startEcho(ctx, "-ttl", "1440000")
	if err != nil {
		return nil, err
	}
	defer echo.stop()
	paths := map[string][]string{}
	sets := make([][]contestant, pick(l, 6, 1))
	for i := range sets {
		for _, n := range serverCounts() {
			c, err := l.startMany(ctx, echo, n)
			if err != nil {
				return nil, err
			}
			defer c.stop()
			one := contestant{fmt.Sprintf("%d servers", n), c, ""}
			if i == 0 {
				for k := range n {
					paths[one.name] = append(paths[one.name], fmt.Sprintf("servers/echo%d/mcp", k))
				}
			}
			sets[i] = append(sets[i], one)
			// Every server some hundred times, so that all are connected and nothing is
			// still being learned: each has budgets and a login state of its own.
			warm := load{clients: 16, size: 256, tool: "echo", paths: paths[one.name]}
			if _, err := round(ctx, one, warm, max(time.Second, time.Duration(n)*pick(l, 15*time.Millisecond, 3*time.Millisecond))); err != nil {
				return nil, err
			}
		}
	}
	scores, err := l.taking(ctx, sets, paths)
	if err != nil {
		return nil, err
	}
	for i, n := range serverCounts() { // to be compared with each other
		c := sets[0][i]
		ld := load{clients: 16, size: 256, tool: "echo", paths: paths[c.name]}
		if err := l.profile(ctx, c, ld, fmt.Sprintf("servers-%d", n)); err != nil {
			return nil, err
		}
	}
	return serverRows(sets[0], scores), nil
}

// taking has all take turns. Many short rounds: the speed of a machine changes, and
// those of one turn are compared with each other. Several sets of processes: two that
// are the same differ by some percent for as long as they live, by where their memory
// happens to lie.
func (l *lab) taking(ctx context.Context, sets [][]contestant, paths map[string][]string) (map[string][]score, error) {
	scores := map[string][]score{}
	for i := range pick(l, 90, 6) {
		set := sets[i%len(sets)]
		for k := range set {
			c := set[(i/len(sets)+k)%len(set)]
			s, err := round(ctx, c, load{clients: 16, size: 256, tool: "echo", paths: paths[c.name]}, pick(l, 400*time.Millisecond, 300*time.Millisecond))
			if err != nil {
				return nil, err
			}
			scores[c.name] = append(scores[c.name], s)
		}
	}
	return scores, nil
}

// serverRows compares with the first, which has one server.
func serverRows(all []contestant, scores map[string][]score) []row {
	var rows []row
	one := scores[all[0].name]
	for _, c := range all {
		rows = append(rows, row{Part: "servers", Name: c.name + " CPU", Value: of(scores[c.name], func(s score) float64 { return s.cpu }), Unit: "µs"})
		if c.name == all[0].name {
			continue
		}
		var ratios []float64
		for i, s := range scores[c.name] {
			ratios = append(ratios, s.cpu/one[i].cpu)
		}
		rows = append(rows, row{Part: "servers", Name: c.name + " CPU over one server", Value: median(ratios), Unit: "×", Bar: 1.1})
	}
	return rows
}

// startMany starts an usher before n servers, which are paths of one process.
func (l *lab) startMany(ctx context.Context, echo *child, n int) (*child, error) {
	defs := map[string]string{}
	for i := range n {
		defs[fmt.Sprintf("echo%d", i)] = at(fmt.Sprintf("%s%d/mcp", echo.url, i))
	}
	home, err := l.home(defs)
	if err != nil {
		return nil, err
	}
	return l.startUsher(ctx, home)
}
