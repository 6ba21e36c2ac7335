package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// report prints one leg as a table, then everything known about what failed.
func report(w io.Writer, l leg, results []result) {
	fmt.Fprintf(w, "\n%s\n", l.title())
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range results {
		fmt.Fprintf(table, "  %s\t%s\t%d checks (floor %d)\t%.1f s\t%s\n",
			verdict(r), r.scenario.name, r.passed, r.floor, r.took.Seconds(), strings.Join(remarks(r), ", "))
	}
	table.Flush()
	scored, others, checks := figures(results)
	fmt.Fprintf(w, "  %s, %s: scored %s, others %s, %d checks\n", docName(l), docRevision(l), scored, others, checks)
	for _, r := range results {
		if !r.ok() {
			explain(w, r)
		}
	}
}

func verdict(r result) string {
	switch {
	case r.known:
		return "known"
	case r.ok():
		return "ok"
	}
	return "FAIL"
}

func remarks(r result) []string {
	var all []string
	if !r.scenario.scored {
		all = append(all, "unscored by the suite")
	}
	return append(all, r.earlier...)
}

// explain prints a failed scenario: the problems, then the end of the output.
func explain(w io.Writer, r result) {
	fmt.Fprintf(w, "\n  %s:\n", r.scenario.name)
	for _, p := range r.problems {
		fmt.Fprintf(w, "    %s\n", p)
	}
	lines := strings.Split(strings.TrimSpace(string(r.output)), "\n")
	const shown = 40
	if len(lines) > shown {
		lines = append([]string{"…"}, lines[len(lines)-shown:]...)
	}
	for _, line := range lines {
		fmt.Fprintf(w, "    | %s\n", line)
	}
	fmt.Fprintf(w, "    results: %s\n", r.dir)
}

// tally counts over all legs.
type tally struct {
	passed, failed, known int
	rows                  []row
}

// row is one leg and what came of it.
type row struct {
	leg     leg
	results []result
}

func (t *tally) add(l leg, results []result) {
	t.rows = append(t.rows, row{l, results})
	for _, r := range results {
		switch {
		case r.known:
			t.known++
		case r.ok():
			t.passed++
		default:
			t.failed++
		}
	}
}

// close prints the sum; a run of nothing is not a pass.
func (t tally) close(w io.Writer, took time.Duration) bool {
	fmt.Fprintf(w, "\nconformance took %.0f s\n", took.Seconds())
	if t.known > 0 {
		fmt.Fprintf(w, "%d more did not pass, for reasons that are written down above\n", t.known)
	}
	fmt.Fprintf(w, "conformance: %d passed, %d failed\n", t.passed, t.failed)
	return t.failed == 0 && t.passed > 0
}
