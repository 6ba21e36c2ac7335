package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/usher-mcp/usher/internal/torture"
)

// figuresTable shows the report of the last long run of `usher-torture`, which is
// kept as it was printed.
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
		kept := "kept"
		if !p.Kept {
			kept = "**broken**"
		}
		if !p.Full && p.Skipped == "" {
			kept += ", cut short"
		}
		rows = append(rows, []string{fmt.Sprint(p.Number), kept, p.String(), fmt.Sprintf("%.0f s", p.Seconds)})
	}
	head := fmt.Sprintf("Version %s on %s with %d processors, %s, seed %d, %.0f minutes; the report itself is\n[promises.json](promises.json).\n\n",
		r.Version, r.System, r.CPUs, r.Started.Format("2006-01-02"), r.Seed, r.Seconds/60)
	return head + table([]string{"#", "", "figures", "tried for"}, rows), nil
}
