package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
)

// TestGeneratedPages wants what `make docs` would write.
func TestGeneratedPages(t *testing.T) {
	root := checkout(t)
	want, err := Pages(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		old, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(old), "\n"), strings.Split(text, "\n")); diff != "" {
			t.Errorf("%s is out of date; run: make docs (-is +should be)\n%s", name, diff)
		}
	}
}

// TestReadmeBegins wants the two commands of a newcomer, and nothing else, at the
// top of README.md.
func TestReadmeBegins(t *testing.T) {
	first := Blocks(pages(t)[0].text)[0]
	var commands []string
	for _, line := range first.Lines {
		command, _, _ := strings.Cut(line, "#")
		commands = append(commands, strings.TrimSpace(command))
	}
	if want := []string{"make demo", "make test"}; !slices.Equal(commands, want) {
		t.Errorf("README.md begins with %q, want %q", commands, want)
	}
}

// TestManual looks for a page of every command, and for text that the formatter
// would take for a request.
func TestManual(t *testing.T) {
	root, err := Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	request := regexp.MustCompile(`^\.(TH|SH|B|PP|nf|fi)\b`)
	made := Manual(root)
	for _, c := range root.All() {
		text := made[strings.Join(c.Path, "-")+".1"]
		for _, part := range []string{".TH ", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH OPTIONS\n", ".SH EXAMPLES\n", ".SH SEE ALSO\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("the manual of %s has no %q", c.Name(), part)
			}
		}
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !request.MatchString(line) {
				t.Errorf("the manual of %s has the line %q", c.Name(), line)
			}
		}
	}
}

// TestHelpHasExamples wants an example in the help of every command that does
// something.
func TestHelpHasExamples(t *testing.T) {
	root, err := Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(root.Children) < 10 {
		t.Fatalf("the help lists only %d commands", len(root.Children))
	}
	for _, c := range root.All() {
		if len(c.Examples) == 0 && len(c.Children) == 0 {
			t.Errorf("%s --help has no examples", c.Name())
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks follows the links between pages.
func TestLinks(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.text, -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path, text := p.path, p.text
			if target != "" {
				path = filepath.Join(filepath.Dir(p.path), target)
				read, err := os.ReadFile(path)
				if err != nil {
					t.Errorf("%s: link %s: %v", p.name, m[1], err)
					continue
				}
				text = string(read)
			}
			if fragment != "" && !slices.Contains(anchors(text), fragment) {
				t.Errorf("%s: link %s: %s has no such heading", p.name, m[1], filepath.Base(path))
			}
		}
	}
}

// anchors lists the fragments of a page's headings.
func anchors(text string) []string {
	var out []string
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") && !fenced {
			out = append(out, anchor(strings.ReplaceAll(title, "`", "")))
		}
	}
	return out
}

// TestPagesAreReachable wants a link to every page from README.md.
func TestPagesAreReachable(t *testing.T) {
	all := pages(t)
	for _, p := range all[1:] {
		if !strings.Contains(all[0].text, "(docs/"+p.name+")") {
			t.Errorf("README.md has no link to docs/%s", p.name)
		}
	}
}

// TestConfigurationExamples reads every JSON block that shows a configuration: it
// must be understood without a warning, unless it is shown for its mistake.
func TestConfigurationExamples(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		for _, b := range Blocks(p.text) {
			_, broken := b.Attrs["broken"]
			if broken || !strings.HasPrefix(b.Lang, "json") || !strings.Contains(b.Text(), `"mcpServers"`) || b.Attrs["from"] != "" {
				continue
			}
			n++
			cfg, err := config.Parse("example.json", []byte(b.Text()), config.LayerUser)
			if err != nil {
				t.Errorf("%s:%d: %v", p.name, b.First, err)
				continue
			}
			for _, w := range cfg.Warnings {
				t.Errorf("%s:%d: %s", p.name, b.First, w)
			}
			if cfg.Usher.Problem != nil {
				t.Errorf("%s:%d: %v", p.name, b.First, cfg.Usher.Problem)
			}
			for _, s := range cfg.Servers {
				if s.Problem != nil {
					t.Errorf("%s:%d: %s: %v", p.name, b.First, s.Name, s.Problem)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no page shows a configuration")
	}
}
