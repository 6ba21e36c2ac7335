package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// stages are what a call passes, and the Go benchmark that measures each by itself.
func stages() []struct{ name, room, benchmark string } {
	return []struct{ name, room, benchmark string }{
		{"envelope and params read", "internal/wire", "BenchmarkParseAndReadParams/"},
		{"gate with pins and cache look-up", "policy", "BenchmarkCall/nothing_applies"},
		{"gate with rules too", "policy", "BenchmarkCall/rules"},
		{"gate with budgets too", "policy", "BenchmarkCall/budgets"},
		{"gate without pins", "policy", "BenchmarkCall/pins_off"},
		{"supervision: breaker, deadline, connection", "host", "BenchmarkDo"},
		{"view of one server, with gate", "surface", "BenchmarkCall/single"},
		{"view of all servers, with gate", "surface", "BenchmarkCall/direct"},
		{"audit: noted, hashed and written in blocks", "vault", "BenchmarkTrail"},
		{"metrics: counter and histogram", "cli", "BenchmarkMetrics"},
	}
}

// costs asks the Go benchmarks of the rooms what each stage of a call costs.
func costs(ctx context.Context, l *lab) ([]row, error) {
	seen := map[string]map[string]cost{}
	var rows []row
	for _, s := range stages() {
		if seen[s.room] == nil {
			fmt.Fprintf(l.log, "costs: %s\n", s.room)
			got, err := l.benchmarks(ctx, s.room)
			if err != nil {
				return rows, err
			}
			seen[s.room] = got
		}
		c, ok := seen[s.room][s.benchmark]
		if strings.HasSuffix(s.benchmark, "/") { // the first of several
			for name, one := range seen[s.room] {
				if strings.HasPrefix(name, s.benchmark) && (!ok || one.ns < c.ns) {
					c, ok = one, true
				}
			}
		}
		if !ok {
			return rows, fmt.Errorf("%s has no benchmark %s", s.room, s.benchmark)
		}
		rows = append(rows, row{Part: "costs", Name: s.name, Value: c.ns / 1e3, Unit: "µs", Note: fmt.Sprintf("%.0f B, %.0f allocations", c.bytes, c.allocs)})
	}
	return rows, nil
}

type cost struct{ ns, bytes, allocs float64 }

// benchmarks runs those of a room and reads what they print.
func (l *lab) benchmarks(ctx context.Context, room string) (map[string]cost, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark(ParseAndReadParams|Call|Do|Trail|Metrics)$", "-benchmem",
		"-benchtime", pick(l, "500ms", "50ms"), "./"+room)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("benchmarks of %s: %w: %s", room, err, text)
	}
	out := map[string]cost{}
	for sc := bufio.NewScanner(bytes.NewReader(text)); sc.Scan(); {
		f := strings.Fields(sc.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := f[0]
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i] // the number of cores
		}
		var c cost
		for i := 2; i+1 < len(f); i += 2 {
			v, _ := strconv.ParseFloat(f[i], 64) // what is no number is no figure of ours
			switch f[i+1] {
			case "ns/op":
				c.ns = v
			case "B/op":
				c.bytes = v
			case "allocs/op":
				c.allocs = v
			}
		}
		out[name] = c
	}
	return out, nil
}
