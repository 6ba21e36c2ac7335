package edit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/usher-mcp/usher/config"
)

const commented = `// my servers
{
  // the list
  "mcpServers": {
    // files: keep first
    "files": {
      "command": "npx", // not bunx
      "args": ["-y", "@x/files"] // all of them
    },

    /* github */
    "github": {"url": "https://g.example/mcp"} // work
    // nothing below
  },
  "usher": {
    "policy": {
      "deny": [
        "github/delete_*", // ever
      ],
    },
  }
}
// end
`

func TestEdits(t *testing.T) {
	linear := config.Server{Name: "linear", URL: "https://l.example/mcp", Headers: map[string]string{"X": "<&>"}}
	tests := []struct {
		name, text string
		edit       func(*Document) error
	}{
		{"add", commented, func(d *Document) error { return d.Add(linear, false) }},
		{"add to empty file", "", func(d *Document) error { return d.Add(linear, false) }},
		{"add to empty object", "{}\n", func(d *Document) error { return d.Add(linear, false) }},
		{"add to empty list with a comment", "{\n\t\"mcpServers\": { // none yet\n\t}\n}\n", func(d *Document) error { return d.Add(linear, false) }},
		{"add to servers", "{\n    \"servers\": {\n        \"a\": {}\n    }\n}", func(d *Document) error { return d.Add(linear, false) }},
		{"add after a trailing comma", "{\n  \"mcpServers\": {\n    \"a\": {}, // first\n  },\n}", func(d *Document) error { return d.Add(linear, false) }},
		{"add to one line", `{"mcpServers":{"a":{"command":"x"}}}`, func(d *Document) error { return d.Add(linear, false) }},
		{"add to one empty line", `{"mcpServers":{}}`, func(d *Document) error { return d.Add(linear, false) }},
		{"add to windows", "{\r\n  \"mcpServers\": {\r\n    \"a\": {}\r\n  }\r\n}\r\n", func(d *Document) error { return d.Add(linear, false) }},
		{"replace", commented, func(d *Document) error {
			return d.Add(config.Server{Name: "files", Command: "npx", Args: []string{"-y", "@x/files@2"}, Env: map[string]string{"A": "b"}}, true)
		}},
		{"remove first", commented, func(d *Document) error { return d.Remove("files") }},
		{"remove last", commented, func(d *Document) error { return d.Remove("github") }},
		{"remove both", commented, func(d *Document) error { return errors.Join(d.Remove("github"), d.Remove("files")) }},
		{"remove from one line", `{"mcpServers": {"a": {}, "b": {}, "c": {}}}`, func(d *Document) error { return d.Remove("b") }},
		{"remove last from one line", `{"mcpServers": {"a": {}, /* b */ "b": {}}}`, func(d *Document) error { return d.Remove("b") }},
		{"remove first from one line", `{"mcpServers": {"a": {}, /* b */ "b": {}}}`, func(d *Document) error { return d.Remove("a") }},
		{"set a field", commented, func(d *Document) error { return d.SetField("github", true, "disabled") }},
		{"set a deep field", commented, func(d *Document) error { return d.SetField("files", "5s", "timeouts", "call") }},
		{"deny", commented, func(d *Document) error { return d.AddRule("deny", "files/rm") }},
		{"deny again", commented, func(d *Document) error { return d.AddRule("deny", "github/delete_*") }},
		{"allow", commented, func(d *Document) error { return d.AddRule("allow", "files") }},
		{"deny in an empty file", "", func(d *Document) error { return d.AddRule("deny", "x/*") }},
		{"remove a rule", commented, func(d *Document) error { _, err := d.RemoveRule("deny", "github/delete_*"); return err }},
	}
	var b strings.Builder
	for _, tt := range tests {
		d, err := Parse("mcp.json", []byte(tt.text))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if err := tt.edit(d); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		b.WriteString("== " + tt.name + "\n" + strings.ReplaceAll(string(d.Bytes()), "\r", "<CR>"))
		if !strings.HasSuffix(b.String(), "\n") {
			b.WriteString("<no newline>\n")
		}
	}
	path := filepath.Join("testdata", "edits.golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEditRefusals(t *testing.T) {
	d, err := Parse("mcp.json", []byte(commented))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Add(config.Server{Name: "github", URL: "https://x"}, false); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "mcp.json:12:") {
		t.Errorf("add an existing name: %v", err)
	}
	if err := d.Remove("gihtub"); !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), `"github"`) {
		t.Errorf("remove an unknown name: %v", err)
	}
	for _, err := range []error{
		d.Add(config.Server{Name: "a/b", URL: "https://x"}, false), d.AddRule("deny", "[x"), d.AddRule("maybe", "x"), d.SetField("nope", 1, "x"),
		d.Set([]byte("1"), "mcpServers", "github", "url", "deeper"),
	} {
		if err == nil {
			t.Error("a wrong edit was taken")
		}
	}
	if diff := cmp.Diff(commented, string(d.Bytes())); diff != "" {
		t.Errorf("refused edits changed the text:\n%s", diff)
	}
	for _, text := range []string{`{"a": `, `[]`, `{"mcpServers": []}`} {
		d, err := Parse("mcp.json", []byte(text))
		if err == nil {
			err = d.Add(config.Server{Name: "a", URL: "https://x"}, false)
		}
		if err == nil {
			t.Errorf("%s was edited", text)
		}
	}
}

// Adding a server and removing it again leaves the rest of the meaning alone,
// whatever the file looks like.
func TestAddRemoveIsHarmless(t *testing.T) {
	seps := []string{"", " ", "\n", "\n  ", " // c\n", "/* c */", "\r\n\t"}
	rapid.Check(t, func(t *rapid.T) {
		sep := func() string { return rapid.SampledFrom(seps).Draw(t, "sep") }
		text := sep() + "{" + sep() + `"mcpServers"` + sep() + ":" + sep() + "{" + sep()
		n := rapid.IntRange(0, 3).Draw(t, "n")
		for i := range n {
			text += `"s` + string(rune('0'+i)) + `"` + sep() + ":" + sep() + `{"command":` + sep() + `"x"}` + sep()
			if i < n-1 || rapid.Bool().Draw(t, "trailing") {
				text += "," + sep()
			}
		}
		text += "}" + sep() + "}" + sep()
		d, err := Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		before := strings.Join(d.Servers(), " ")
		if err := d.Add(config.Server{Name: "new", Command: "y", Args: []string{"z"}}, false); err != nil {
			t.Fatalf("add to %q: %v", text, err)
		}
		if got := strings.Join(d.Servers(), " "); got != strings.TrimSpace(before+" new") {
			t.Fatalf("after add to %q: %q", text, got)
		}
		if got, want := strings.Count(string(d.Bytes()), "c"), strings.Count(text, "c"); got < want {
			t.Fatalf("a comment was lost: %q became %q", text, d.Bytes())
		}
		for _, name := range rapid.Permutation(d.Servers()).Draw(t, "order") {
			if err := d.Remove(name); err != nil {
				t.Fatalf("remove %s from %q: %v", name, d.Bytes(), err)
			}
		}
		if len(d.Servers()) != 0 {
			t.Fatalf("left: %v", d.Servers())
		}
	})
}

func TestUpdate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "deep", "er", "mcp.json")
	add := func(name string) func(*Document) error {
		return func(d *Document) error { return d.Add(config.Server{Name: name, URL: "https://x.example"}, false) }
	}
	if changed, err := Update(path, add("a")); err != nil || !changed {
		t.Fatal(changed, err)
	}
	mode := func(p string) os.FileMode {
		info, err := os.Lstat(p)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if got := mode(path); got != 0o600 {
		t.Errorf("a new file has mode %v", got)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Update(link, add("b")); err != nil {
		t.Fatal(err)
	}
	if mode(link)&os.ModeSymlink == 0 || mode(path) != 0o640 {
		t.Errorf("link %v, file %v", mode(link), mode(path))
	}
	text, _ := os.ReadFile(path)
	if !strings.Contains(string(text), `"b"`) {
		t.Errorf("the file behind the link was not edited: %s", text)
	}

	if changed, err := Update(path, func(*Document) error { return nil }); changed || err != nil {
		t.Errorf("nothing to do: %v, %v", changed, err)
	}
	if err := os.WriteFile(path, []byte("{broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Update(path, add("c")); err == nil {
		t.Error("a file that does not parse was edited")
	}
	if text, _ := os.ReadFile(path); string(text) != "{broken" {
		t.Errorf("it now holds %q", text)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp"))
	hidden, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.tmp"))
	if len(left)+len(hidden) > 0 {
		t.Errorf("left behind: %v %v", left, hidden)
	}
}

func TestUpdateSeesOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	calls := 0
	_, err := Update(path, func(d *Document) error {
		if calls++; calls == 1 { // somebody else writes in between
			if err := os.WriteFile(path, []byte(`{"mcpServers": {"other": {"command": "x"}}}`), 0o600); err != nil {
				return err
			}
		}
		return d.Add(config.Server{Name: "mine", URL: "https://x.example"}, false)
	})
	text, _ := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "other") || !strings.Contains(string(text), "mine") {
		t.Errorf("%v, %s", err, text)
	}
}
