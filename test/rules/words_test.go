package rules

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/usher-mcp/usher/test/need"
)

// The words are put together from halves, so that this file does not break the
// rule itself.
var words = []struct {
	why string
	any []string
}{
	{
		"a package registry's host name; installers are used as each machine has them set up",
		[]string{
			"npmjs" + ".org", "npmjs" + ".com", "yarnpkg" + ".com", "proxy." + "golang.org", "sum." + "golang.org",
			"deb." + "debian.org", "security." + "debian.org", "pypi" + ".org", "static." + "crates.io",
		},
	},
	{
		"a path of one machine",
		[]string{"/work/" + "main", "/work/" + "shared", "/work/" + ".", "/tmp/" + "brief", "/root/" + ".", "/root/" + "go/"},
	},
	{
		"a file that is not in the repository",
		[]string{"safety" + ".md", "pains" + ".md", "client-configs" + ".md", "known-good" + "-go", "../" + "shared/"},
	},
	{
		"unfinished work",
		[]string{"TO" + "DO:", "TO" + "DO(", "// TO" + "DO", "FIX" + "ME"},
	},
}

// unwanted finds forbidden words in the text of a file, each once.
func unwanted(text []byte) []string {
	var found []string
	for _, w := range words {
		for _, word := range w.any {
			if at := bytes.Index(text, []byte(word)); at >= 0 {
				line := 1 + bytes.Count(text[:at], []byte("\n"))
				found = append(found, fmt.Sprintf("line %d: %q is %s", line, word, w.why))
				break
			}
		}
	}
	return found
}

func TestNoUnwantedWords(t *testing.T) {
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	names, err := tracked()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range unwanted(text) {
			t.Errorf("%s: %s", name, finding)
		}
	}
}

func TestUnwantedFinds(t *testing.T) {
	for text, want := range map[string]int{
		"https://registry." + "npm" + "js.org/x": 1,
		"cd /work" + "/main && ls":               1,
		"// TO" + "DO later":                     1,
		"see spec/safe" + "ty.md":                1,
		"both: /tmp/bri" + "ef, FIX" + "ME":      2,
		"a mastodon ran over the network":        0,
		"golang.org/x/sync and pkg.go.dev":       0,
		"/home/me/work/docs":                     0,
	} {
		if got := unwanted([]byte(text)); len(got) != want {
			t.Errorf("%q: findings %q, want %d", text, got, want)
		}
	}
}
