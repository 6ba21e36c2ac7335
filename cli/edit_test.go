package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

// TestJSONTextMeansTheSame wants text without anything a terminal acts on that
// still decodes to the very value.
func TestJSONTextMeansTheSame(t *testing.T) {
	for _, s := range append(deceits, "plain <&> ü 你好", "\u2028", "\x7f", "😀", "\U0010fffd") {
		text, err := cmdutil.JSONText(map[string]string{s: s})
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(string(text), cmdutil.IsHostile) {
			t.Errorf("%q is written as %q", s, text)
		}
		var back map[string]string
		if err := json.Unmarshal(text, &back); err != nil || back[s] != s {
			t.Errorf("%q is written as %s and read as %q (%v)", s, text, back, err)
		}
	}
}

// TestRefusedEditsChangeNothing wants the very bytes and no new file after
// commands that fail at the last moment.
func TestRefusedEditsChangeNothing(t *testing.T) {
	const odd = "{\r\n\t// kept\r\n\t\"mcpServers\": {\"a\": {\"url\": \"https://a.example\"},},\r\n\t\"usher\": {\"policy\": {\"deny\": 7}}}"
	for _, args := range [][]string{
		{"add", "a", "https://b.example"},
		{"deny", "x"},
		{"deny", "--remove", "x"},
		{"remove", "b"},
		{"add", "b", "nonsense"},
		{"add", "b", "https://b.example", "--project", "-H", "Authorization: Bearer abc123secretvalue"},
	} {
		w := newWorld(t)
		w.write("usher/mcp.json", odd)
		code, _, errs := w.run(args...)
		if code == 0 || errs == "" {
			t.Errorf("usher %q: code %d, %q", args, code, errs)
		}
		if got := w.read("usher/mcp.json"); got != odd {
			t.Errorf("usher %q changed the file:\n%q", args, got)
		}
		if left, _ := filepath.Glob(filepath.Join(w.dir, "usher", "*")); len(left) != 2 { // and the script token
			t.Errorf("usher %q left %q", args, left)
		}
		if left, _ := filepath.Glob(filepath.Join(w.dir, ".*")); len(left) != 0 {
			t.Errorf("usher %q left %q", args, left)
		}
	}
}
