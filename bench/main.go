// Command bench measures usher against its own promises and against other ways of
// doing the same.
//
// It owns the measuring: each part starts its own servers as child processes,
// measures contestants alternately in one run, and reports ratios of medians, since
// absolute times depend on the machine. It prints a table and writes
// bench/results.json. It refuses to own any product code: what it measures is the
// root package.
//
// Flow: main picks the parts (-part), each part returns rows, a row that misses its
// bar makes the exit code 1. The rows of a part replace those of an earlier run in
// bench/results.json, from which docs/performance.md is made (-doc makes it alone).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/process"
)

// row is one measured figure and its bar.
type row struct {
	Part  string  `json:"part"`
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Bar   float64 `json:"bar,omitempty"` // at most; 0: no bar
	Note  string  `json:"note,omitempty"`
}

func (r row) missed() bool { return r.Bar > 0 && r.Value > r.Bar }

// published are the figures that the document is made of.
const published = "bench/results.json"

// part is one subject that can be measured by itself.
type part struct {
	name string
	run  func(context.Context, *lab) ([]row, error)
}

// parts in the order in which they are measured and told.
func parts() []part {
	return []part{
		{"calls", calls},
		{"large", large},
		{"stdio", stdio},
		{"costs", costs},
		{"servers", servers},
		{"memory", memory},
		{"lists", lists},
		{"oneshot", oneshot},
		{"meta", meta},
		{"login", login},
		{"isolation", func(ctx context.Context, l *lab) ([]row, error) { return isolation(ctx, l.log) }},
	}
}

func main() {
	process.Main()
	if code, is := runRole(os.Args[1:]); is {
		os.Exit(code)
	}
	only := flag.String("part", "", "measure only these parts, with commas between")
	quick := flag.Bool("quick", false, "fewer and shorter rounds: minutes become seconds, figures become rough")
	out := flag.String("out", published, "where to write the figures; elsewhere, no document is made of them")
	doc := flag.String("doc", "docs", "directory to write performance.md and its plots to")
	onlyDoc := flag.Bool("doc-only", false, "measure nothing, make the document again")
	profiles := flag.String("profiles", "", "directory to write profiles of usher to, while it is measured")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	missed, err := run(ctx, *only, *quick, *onlyDoc, *out, *doc, *profiles)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if missed || err != nil {
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, quick, onlyDoc bool, out, doc, profiles string) (missed bool, err error) {
	if !onlyDoc {
		l, err := newLab(ctx, quick, profiles, os.Stderr)
		if err != nil {
			return false, err
		}
		defer l.close()
		rows, err := measure(ctx, l, only)
		report(os.Stdout, rows)
		if err != nil {
			return false, err
		}
		if err := write(out, rows, quick); err != nil {
			return false, err
		}
		missed = slices.ContainsFunc(rows, row.missed)
	}
	if out != published {
		return missed, nil
	}
	return missed, document(out, doc)
}

func measure(ctx context.Context, l *lab, only string) ([]row, error) {
	var rows []row
	wanted := strings.Split(only, ",")
	for _, p := range parts() {
		if only != "" && !slices.Contains(wanted, p.name) {
			continue
		}
		began := time.Now()
		got, err := p.run(ctx, l)
		rows = append(rows, got...)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(l.log, "%s took %s\n", p.name, time.Since(began).Round(time.Second))
	}
	return rows, nil
}

func report(w io.Writer, rows []row) {
	for _, r := range rows {
		bar, mark := "", ""
		if r.Bar > 0 {
			bar = fmt.Sprintf("at most %.4g", r.Bar)
			mark = "ok"
			if r.missed() {
				mark = "MISSED"
			}
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-10s %-34s %10.3f %-6s %-14s %-7s %s", r.Part, r.Name, r.Value, r.Unit, bar, mark, r.Note), " "))
	}
}

// results is the file that documents are made from.
type results struct {
	When  time.Time `json:"when"`
	Go    string    `json:"go"`
	Cores int       `json:"cores"`
	Quick []string  `json:"quick,omitempty"` // parts that were last measured in the quick form
	Rows  []row     `json:"rows"`
}

// read is an empty one when there is no file yet.
func read(path string) (results, error) {
	var r results
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// write puts rows into the file in place of those of the same parts.
func write(path string, rows []row, quick bool) error {
	old, err := read(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	next := results{When: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), Cores: runtime.NumCPU()}
	for _, p := range parts() {
		of := func(r row) bool { return r.Part == p.name }
		isQuick := quick
		got := only(rows, of)
		if len(got) == 0 {
			got, isQuick = only(old.Rows, of), slices.Contains(old.Quick, p.name)
		}
		if next.Rows = append(next.Rows, got...); isQuick && len(got) > 0 {
			next.Quick = append(next.Quick, p.name)
		}
	}
	text, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func only(rows []row, of func(row) bool) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !of(r) })
}
