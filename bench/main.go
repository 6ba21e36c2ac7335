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
// bar makes the exit code 1.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
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

// part is one subject that can be measured by itself.
type part struct {
	name string
	run  func(context.Context, io.Writer) ([]row, error)
}

func parts() []part {
	return []part{
		{"isolation", isolation},
	}
}

func main() {
	process.Main()
	if len(os.Args) > 1 && os.Args[1] == "polite" {
		fmt.Fprintln(os.Stderr, "bench:", becomePolite(os.Args[2:]))
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == "child-fake" {
		os.Exit(fake.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	only := flag.String("part", "", "measure only this part")
	out := flag.String("out", "bench/results.json", "where to write the figures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rows, err := measure(ctx, *only, os.Stderr)
	report(os.Stdout, rows)
	if err == nil {
		err = write(*out, rows)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	for _, r := range rows {
		if r.missed() {
			os.Exit(1)
		}
	}
}

func measure(ctx context.Context, only string, log io.Writer) ([]row, error) {
	var rows []row
	for _, p := range parts() {
		if only != "" && only != p.name {
			continue
		}
		began := time.Now()
		got, err := p.run(ctx, log)
		rows = append(rows, got...)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(log, "%s took %s\n", p.name, time.Since(began).Round(time.Second))
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
	Rows  []row     `json:"rows"`
}

func write(path string, rows []row) error {
	text, err := json.MarshalIndent(results{time.Now().UTC(), runtime.Version(), runtime.NumCPU(), rows}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
