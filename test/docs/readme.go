package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/usher-mcp/usher/internal/torture"
)

// readmeTable compares usher with its alternatives. Every figure comes from another page
// or from a report, so that README.md cannot claim what was not measured.
func readmeTable(root string) (string, error) {
	f := &figures{root: root}
	conformance, comparison := f.rows("docs/conformance.md"), f.rows("docs/comparison.md")
	bench, report := f.bench(), f.report()
	scored := func(revision string, column int) []string {
		return []string{
			"[conformance](docs/conformance.md) scenarios that pass through the gateway, MCP " + revision,
			f.cell(conformance, 2, "stdio, joined", revision),
			"ToolHive " + f.cell(comparison, column, "ToolHive vMCP") +
				", docker/mcp-gateway " + f.cell(comparison, column, "docker/mcp-gateway") +
				", mcpproxy-go " + f.cell(comparison, column, "mcpproxy-go", "gateway"),
		}
	}
	logins := func(client string) int { return f.sum(comparison, client) }
	rows := [][]string{
		scored("2026-07-28", 3),
		scored("2025-11-25", 2),
		{
			"OAuth scenarios that pass",
			fmt.Sprintf("%d/%d", logins("**usher**, by browser"), logins("**usher**, by browser")),
			fmt.Sprintf("official Go SDK %d, mcp-remote %d, mcporter %d", logins("official Go SDK"), logins("mcp-remote"), logins("mcporter")),
		},
		{
			"[CPU](docs/performance.md) of a tool call, 16 clients",
			f.value(bench, "modern 16 usher CPU") + " µs",
			fmt.Sprintf("`httputil.ReverseProxy` %s µs, proxy with the official Go SDK %s µs",
				f.value(bench, "modern 16 bare proxy CPU"), f.value(bench, "modern 16 SDK proxy CPU")),
		},
		{"memory with 100 servers connected", f.value(bench, "RssAnon with 100 HTTP upstreams") + " MB", "–"},
		{
			fmt.Sprintf("logins lost in %d [kills](docs/promises.md) during a token refresh", f.counted(report, 1, "SIGKILLs during token writes")),
			fmt.Sprint(f.counted(report, 1, "logins lost")), "–",
		},
		{
			fmt.Sprintf("processes left after %d kills of usher during a call", f.counted(report, 5, "SIGKILLs of the host during a call")),
			fmt.Sprint(f.counted(report, 5, "processes left after 5 s")), "–",
		},
	}
	return table([]string{"measured", "usher", "alternatives"}, rows), f.err
}

// figures reads measured figures; err is the first one that is missing.
type figures struct {
	root string
	err  error
}

func (f *figures) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

func (f *figures) read(name string) []byte {
	text, err := os.ReadFile(filepath.Join(f.root, filepath.FromSlash(name)))
	if err != nil {
		f.fail("figures of README.md: %w", err)
	}
	return text
}

// rows returns the cells of all tables of a page.
func (f *figures) rows(page string) [][]string {
	var out [][]string
	for line := range strings.SplitSeq(string(f.read(page)), "\n") {
		if inner, ok := strings.CutPrefix(line, "|"); ok {
			cells := strings.Split(strings.TrimSuffix(inner, "|"), "|")
			for i, c := range cells {
				cells[i] = strings.TrimSpace(c)
			}
			out = append(out, cells)
		}
	}
	return out
}

// find returns the first row whose first cells begin as given.
func (f *figures) find(rows [][]string, begins ...string) []string {
	for _, r := range rows {
		found := len(r) >= len(begins)
		for i := 0; found && i < len(begins); i++ {
			found = strings.HasPrefix(r[i], begins[i])
		}
		if found {
			return r
		}
	}
	f.fail("figures of README.md: no row begins with %q", begins)
	return nil
}

func (f *figures) cell(rows [][]string, column int, begins ...string) string {
	r := f.find(rows, begins...)
	if column >= len(r) {
		f.fail("figures of README.md: the row %q has no column %d", begins, column)
		return ""
	}
	return r[column]
}

// sum adds up the numbers of the row of a client in the table of logins, which is the
// only one with three numbers.
func (f *figures) sum(rows [][]string, client string) int {
	for _, r := range rows {
		if len(r) != 4 || !strings.HasPrefix(r[0], client) {
			continue
		}
		total := 0
		for _, c := range r[1:] {
			n, err := strconv.Atoi(c)
			if err != nil {
				total = -1
				break
			}
			total += n
		}
		if total >= 0 {
			return total
		}
	}
	f.fail("figures of README.md: no logins of %q", client)
	return 0
}

func (f *figures) bench() map[string]float64 {
	var results struct {
		Rows []struct {
			Name  string
			Value float64
		}
	}
	if err := json.Unmarshal(f.read("bench/results.json"), &results); err != nil {
		f.fail("bench/results.json: %w", err)
	}
	out := map[string]float64{}
	for _, r := range results.Rows {
		out[r.Name] = r.Value
	}
	return out
}

func (f *figures) value(rows map[string]float64, name string) string {
	v, ok := rows[name]
	if !ok {
		f.fail("bench/results.json has no row %q", name)
	}
	return fmt.Sprintf("%.0f", v)
}

func (f *figures) report() (r torture.Report) {
	if err := json.Unmarshal(f.read("docs/promises.json"), &r); err != nil {
		f.fail("docs/promises.json: %w", err)
	}
	return r
}

func (f *figures) counted(r torture.Report, promise int, name string) int64 {
	for _, p := range r.Promises {
		for _, figure := range p.Figures {
			if p.Number == promise && figure.Name == name {
				return figure.Value
			}
		}
	}
	f.fail("docs/promises.json: promise %d has no figure %q", promise, name)
	return 0
}
