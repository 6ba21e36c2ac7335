package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/test/need"
)

// codePath is a path of a Go file or package in backticks.
var codePath = regexp.MustCompile("`([a-z][\\w/]*(?:/[\\w.]+)*)`")

// notPaths look like paths and are methods of the protocol or packages of others.
var notPaths = []string{"tools/call", "tools/list", "server/discover", "subscriptions/listen", "encoding/gob", "net/http", "testing/synctest", "compress/flate"}

// missingPaths finds paths with a slash that do not exist below root.
func missingPaths(root, text string) []string {
	var missing []string
	for n, line := range strings.Split(text, "\n") {
		for _, m := range codePath.FindAllStringSubmatch(line, -1) {
			path := m[1]
			if !strings.Contains(path, "/") || slices.Contains(notPaths, path) {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path))); err != nil {
				missing = append(missing, fmt.Sprintf("line %d: %s does not exist", n+1, path))
			}
		}
	}
	return missing
}

// TestArchitectureNamesWhatExists: a newcomer follows the paths of ARCHITECTURE.md.
func TestArchitectureNamesWhatExists(t *testing.T) {
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ARCHITECTURE.md", "AGENTS.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, missing := range missingPaths(root, string(text)) {
			t.Errorf("%s: %s", name, missing)
		}
	}
}

func TestMissingPathsFinds(t *testing.T) {
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	text := "`policy/gate.go` calls `host/run.go`, `tools/call` is a method, `make test` a command\n`policy/no_such_file.go`"
	if got := missingPaths(root, text); len(got) != 1 || !strings.HasPrefix(got[0], "line 2: policy/no_such_file.go") {
		t.Errorf("%q", got)
	}
}
