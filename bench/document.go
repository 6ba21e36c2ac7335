package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// changes tells what was changed to get here, with profiles; it is written by hand.
//
//go:embed changes.md
var changes string

// document makes performance.md and its plots from the figures.
func document(path, dir string) error {
	r, err := read(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	plots := filepath.Join(dir, "performance")
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	for name, text := range pages(r) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pages are the texts of the files to write, by path below the directory.
func pages(r results) map[string]string {
	out := map[string]string{}
	var b strings.Builder
	b.WriteString(intro)
	fmt.Fprintf(&b, "Last run: %s, %s, %d cores.", r.When.Format("2006-01-02"), r.Go, r.Cores)
	if len(r.Quick) > 0 {
		fmt.Fprintf(&b, " In the quick form, whose figures are rough: %s.", strings.Join(r.Quick, ", "))
	}
	b.WriteString("\n")
	for _, p := range plots(r) {
		out["performance/"+p.file] = p.svg()
		fmt.Fprintf(&b, "\n![%s](performance/%s)\n", p.title, p.file)
	}
	for _, s := range sections() {
		rows := only(r.Rows, func(one row) bool { return one.Part == s.part })
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", s.title, s.about)
		if s.part == "calls" {
			callTables(&b, rows)
			continue
		}
		table(&b, rows)
	}
	b.WriteString("\n" + changes)
	out["performance.md"] = b.String()
	return out
}

const intro = `<!-- Made by "make bench" from bench/results.json; do not edit. -->

# Performance

What usher adds to a call, compared with alternatives.

These are the figures of one run of ` + "`make bench`" + `, which measures usher and the
alternatives side by side: each candidate runs as a separate process in front of the same
echo server, they take turns, each round starts with another one, every response is
matched to its request, and figures are medians over the rounds.

- **usher** is ` + "`usher serve --http`" + ` with everything enabled: rules, budgets, pins, cache
  look-up, circuit breaker, supervision.
- **bare proxy** is ` + "`httputil.ReverseProxy`" + `, which knows nothing about MCP.
- **SDK proxy** is a proxy made of a client and a server of the official Go SDK.
- **no proxy** is the echo server itself.

How to read them: absolute times are those of a small machine that runs clients,
candidate and server on the same cores, so with many clients most of the latency is
waiting for a core. Ratios carry over to other machines; *at most* is the pass threshold
of a row, and ` + "`make bench`" + ` fails when a row misses it. CPU is the processor time of
the candidate's process for one call, from the operating system.

`

// section is one table of the document.
type section struct{ part, title, about string }

func sections() []section {
	return []section{
		{"calls", "Calls", "`tools/call` with 256-byte results. *modern* is the stateless protocol (2026-07-28), *legacy* the one with sessions, each on both sides of the candidate. Clients send the next request as soon as they have a response, which saturates both cores from 16 clients on; *at 2000/s* sixteen of them share a rate that every candidate can sustain, which is the latency that an agent sees."},
		{"large", "Large results", "Results of 64 KB, 16 clients."},
		{"stdio", "Servers over stdio", "A stdio server compared with the same one over HTTP: 16 clients, processor time of usher. Slow calls are eight others to the same process that take 300 ms each."},
		{"costs", "Cost of each stage", "Go benchmarks of single stages, without a connection. Rows that name the gate include the whole gate; the difference between two of them is what the named part adds."},
		{"servers", "Many servers", "Calls to all servers in turn, 16 clients."},
		{"memory", "Memory", "`RssAnon` of the program, all servers connected and in use."},
		{"lists", "Lists", "From the start of the process to a `tools/list` that contains the tools of all healthy servers, over stdio; and the processor time of lists with 1,000 tools."},
		{"oneshot", "One call from the command line", "From the start of the process until the result is printed, and until the process exits: usher stops its servers first and writes the audit log. The SDK client is a program that only connects, calls and prints."},
		{"meta", "The `mcp` tool", "Median latency of each action over 20 servers with 50 tools each."},
		{"login", "Logging in to many servers", "From the start of the command until all consent pages are ready."},
		{"isolation", "Isolation", "Nineteen healthy servers next to one that misbehaves: the 99th percentile of their calls, divided by the same without it. Each is called 50 times a second, all at the same moment; four callers use the bad one 20 times a second each, and while it is ejected it is reset once a second."},
	}
}

// table writes rows as they are.
func table(b *strings.Builder, rows []row) {
	b.WriteString("| | figure | at most | |\n|---|---:|---:|---|\n")
	for _, r := range rows {
		fmt.Fprintf(b, "| %s | %s %s | %s | %s |\n", r.Name, number(r.Value), r.Unit, bar(r), note(r))
	}
}

func bar(r row) string {
	if r.Bar == 0 {
		return ""
	}
	return number(r.Bar)
}

func note(r row) string {
	switch {
	case r.missed() && r.Note != "":
		return "**missed**: " + r.Note
	case r.missed():
		return "**missed**"
	}
	return r.Note
}

// number shows three digits that count.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// callTables writes a table of the ratios, then one of the figures behind them.
func callTables(b *strings.Builder, rows []row) {
	b.WriteString("| clients | CPU over bare proxy | p50 | p99 | CPU over SDK proxy |\n|---|---:|---:|---:|---:|\n")
	for _, era := range eras() {
		var all []string
		for _, n := range clientCounts() {
			all = append(all, fmt.Sprintf("%s %d ", era, n))
		}
		for _, at := range append(all, fmt.Sprintf("%s at %d/s ", era, steadyRate)) {
			fmt.Fprintf(b, "| %s |", strings.TrimSpace(at))
			for _, name := range []string{"CPU over " + byBare, "p50 over " + byBare, "p99 over " + byBare, "CPU over " + bySDK} {
				i := slices.IndexFunc(rows, func(r row) bool { return r.Name == at+name })
				if i < 0 {
					b.WriteString(" |")
					continue
				}
				fmt.Fprintf(b, " %s × %s |", number(rows[i].Value), strings.TrimSpace(note(rows[i])))
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("| *at most* | 1.00 × | 1.00 × | 1.10 × | 0.20 × |\n\n")
	b.WriteString("| | calls/s | p50 µs | p95 µs | p99 µs | CPU µs | allocations | bytes |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, era := range eras() {
		for _, n := range clientCounts() {
			for _, who := range []string{byUsher, byBare, bySDK, noProxy} {
				fmt.Fprintf(b, "| %s %d %s |", era, n, who)
				for _, m := range []string{"calls/s", "p50", "p95", "p99", "CPU", "allocations", "bytes"} {
					if v := valueOf(rows, fmt.Sprintf("%s %d %s %s", era, n, who, m)); v > 0 {
						fmt.Fprintf(b, " %s |", number(v))
					} else {
						b.WriteString(" |")
					}
				}
				b.WriteString("\n")
			}
		}
	}
}

func valueOf(rows []row, name string) float64 {
	for _, r := range rows {
		if r.Name == name {
			return r.Value
		}
	}
	return 0
}
