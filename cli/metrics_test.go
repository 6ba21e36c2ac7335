package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Dashboards and alerts know the metrics by name, type and meaning: the list only
// grows.
func TestMetricsStay(t *testing.T) {
	s := serveHere(t, nil, nil)
	defer s.stop()
	s.callAdd(t)
	_, text := fetch(t, "GET", s.metrics+"/metrics", "")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(text)); err != nil {
		t.Fatalf("the official reader: %v", err)
	}
	list, err := os.ReadFile(filepath.Join("testdata", "metrics", "families.txt"))
	if err != nil {
		t.Fatal(err)
	}
	families := func(text string) (lines []string) {
		for line := range strings.Lines(text) {
			process := strings.Contains(line, " process_") && runtime.GOOS != "linux" // elsewhere the system tells less
			if strings.HasPrefix(line, "# ") && !process {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if diff := cmp.Diff(families(string(list)), families(text)); diff != "" {
		t.Errorf("metrics of the list (-) and of usher (+): what is new belongs into testdata/metrics/families.txt\n%s", diff)
	}
}
