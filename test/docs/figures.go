package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/usher-mcp/usher/internal/torture"
)

// figuresTable shows the report of the last full run of `usher-torture`, which is stored
// as it was printed.
func figuresTable(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "promises.json"))
	if err != nil {
		return "", err
	}
	var r torture.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return "", fmt.Errorf("docs/promises.json: %w", err)
	}
	var rows [][]string
	for _, p := range r.Promises {
		result := "held"
		if !p.Kept {
			result = "**broken**"
		}
		if !p.Full && p.Skipped == "" {
			result += ", truncated"
		}
		rows = append(rows, []string{fmt.Sprint(p.Number), result, p.String(), fmt.Sprintf("%.0f s", p.Seconds)})
	}
	head := fmt.Sprintf("Version %s on %s with %d processors, %s, seed %d, %.0f minutes; the full report is\n[promises.json](promises.json).\n\n",
		r.Version, r.System, r.CPUs, r.Started.Format("2006-01-02"), r.Seed, r.Seconds/60)
	return head + table([]string{"#", "result", "figures", "duration"}, rows), nil
}
