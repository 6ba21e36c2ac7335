package clients

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
)

// program0 is what a client is told to start in these tests.
var program0 = config.Server{Transport: config.TransportStdio, Command: "/opt/usher/bin/usher", Args: []string{"serve"}}

func testLinks(t *testing.T) Links {
	t.Helper()
	sys := testSystem(t, "linux", nil)
	return Links{Dir: filepath.Join(filepath.Dir(sys.Home), "state", "links"), System: sys}
}

// fixture is a file of a client as people have it: the one of the import tests,
// or what an export writes.
func fixture(t *testing.T, c client) string {
	t.Helper()
	if paths, _ := filepath.Glob("testdata/in/" + c.name + ".*"); len(paths) == 1 {
		// The one of Claude Desktop has usher in it already.
		return strings.Replace(read(t, paths[0]), `"usher": {"command": "/opt/usher"`, `"theatre": {"command": "/opt/theatre"`, 1)
	}
	text, _, _ := strings.Cut(read(t, "testdata/export/"+c.name+".golden"), "---\n")
	return text
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func mustLink(t *testing.T, l Links, client string, w Wanted) *Change {
	t.Helper()
	ch, err := l.Link(client, w)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Apply(); err != nil {
		t.Fatal(err)
	}
	return ch
}

func mustUnlink(t *testing.T, l Links, client string) []string {
	t.Helper()
	list, err := l.Unlink(client)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, ch := range list {
		if err := ch.Apply(); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, ch.Kind)
	}
	return kinds
}

// spoilt is a file in shapes that people and programs leave it in.
func spoilt(c client, text string) map[string]string {
	out := map[string]string{"as it is": text}
	if !slices.Contains([]string{"opencode", "zed", "codex", "vibe", "goose", "continue"}, c.name) {
		return out // as another of the same format
	}
	for shape, text := range map[string]string{
		"empty":        "",
		"no last line": strings.TrimRight(text, "\n"),
		"windows":      strings.ReplaceAll(text, "\n", "\r\n"),
	} {
		out[shape] = text
	}
	switch c.format {
	case syntax.JSON:
		out["no servers"] = "{}\n"
		out["other keys"] = "{\n\t// mine\n\t\"theme\": \"dark\",\n}\n"
	case syntax.TOML:
		out["other keys"] = "# mine\nmodel = \"x\"\n\n[tools]\na = 1"
	case syntax.YAML:
		out["other keys"] = "# mine\nmodel: x\n" + c.keys[0][0] + ": {}\ntail: 1\n"
		out["comments"] = "# mine\n"
		out["nothing listed"] = c.keys[0][0] + ":\nother: 1\n"
	}
	return out
}

// Every client, every shape: an entry that the client's reader takes for usher,
// every other byte of meaning in its place, and a file that comes back as it was.
func TestLinkAndBack(t *testing.T) {
	for _, c := range table() {
		for shape, text := range spoilt(c, fixture(t, c)) {
			t.Run(c.name+"/"+shape, func(t *testing.T) {
				t.Parallel()
				l := testLinks(t)
				path := c.file0(l.System)
				write(t, path, text)
				ch := mustLink(t, l, c.name, Wanted{Name: "usher", Server: program0})
				if ch.Kind != LinkAdd || ch.File != path {
					t.Errorf("%s %s", ch.Kind, ch.File)
				}
				linked := read(t, path)
				if backup := read(t, ch.Backup()); backup != text {
					t.Errorf("the backup is not the file:\n%s", backup)
				}
				survey, err := l.Survey(c.name)
				if err != nil || survey[0].Err != nil || len(survey[0].Linked) != 1 {
					t.Fatalf("%+v, %v\n%s", survey, err, linked)
				}
				got := survey[0].Linked[0].Server
				if got.Command != program0.Command || len(got.Args) != 1 || got.Args[0] != "serve" || got.Disabled {
					t.Errorf("%+v\n%s", got, linked)
				}
				if again := mustLink(t, l, c.name, Wanted{Name: "usher", Server: program0}); again.Kind != LinkKeep || read(t, path) != linked {
					t.Errorf("the second time: %s\n%s", again.Kind, cmp.Diff(linked, read(t, path)))
				}
				if kinds := mustUnlink(t, l, c.name); len(kinds) != 1 || kinds[0] != LinkRestore {
					t.Error(kinds)
				}
				if diff := cmp.Diff(text, read(t, path)); diff != "" {
					t.Errorf("not what it was (-want +got):\n%s", diff)
				}
				if _, err := os.Stat(l.Dir); err == nil {
					t.Error("a record was left behind")
				}
			})
		}
	}
}

// A file that somebody has touched since loses our entry and nothing else.
func TestUnlinkOfTouchedFiles(t *testing.T) {
	touch := map[syntax.Format]func(string) string{
		syntax.JSON: func(s string) string { return "// a new comment\n" + s },
		syntax.TOML: func(s string) string { return "# a new comment\n" + s + "\n# and more\n[later]\na = 1\n" },
		syntax.YAML: func(s string) string { return "# a new comment\n" + s + "# and more\nlater: 1\n" },
	}
	for _, c := range table() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := testLinks(t)
			path, text := c.file0(l.System), fixture(t, c)
			write(t, path, text)
			mustLink(t, l, c.name, Wanted{Name: "usher", Server: program0})
			write(t, path, touch[c.format](read(t, path)))
			if kinds := mustUnlink(t, l, c.name); len(kinds) != 1 || kinds[0] != LinkRemove {
				t.Error(kinds)
			}
			want, got := touch[c.format](text), read(t, path)
			if c.format == syntax.TOML { // where a table ended, a blank line more or less says nothing
				want, got = strings.ReplaceAll(want, "\n\n", "\n"), strings.ReplaceAll(got, "\n\n", "\n")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if kinds := mustUnlink(t, l, c.name); len(kinds) != 0 {
				t.Error("it was unlinked twice:", kinds)
			}
		})
	}
}

// A file that was not there is gone again, with the directories made for it.
func TestLinkMakesFiles(t *testing.T) {
	for i, c := range table() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := testLinks(t)
			if err := os.MkdirAll(l.System.Home, 0o700); err != nil {
				t.Fatal(err)
			}
			ch := mustLink(t, l, c.name, Wanted{Name: "usher", Server: program0})
			if i%2 == 0 { // touched, but not filled
				write(t, ch.File, read(t, ch.File)+"\n")
			}
			if kinds := mustUnlink(t, l, c.name); ch.Kind != LinkCreate || len(kinds) != 1 || kinds[0] != LinkDelete {
				t.Errorf("%s, %v", ch.Kind, kinds)
			}
			if left, _ := os.ReadDir(l.System.Home); len(left) > 0 {
				t.Errorf("left behind %v", left)
			}
		})
	}
}

// Over HTTP each client is given the address under the key that it reads.
func TestLinkHTTP(t *testing.T) {
	server := config.Server{Transport: config.TransportHTTP, URL: "http://127.0.0.1:7331/mcp", Headers: map[string]string{"Authorization": "Bearer ${env:USHER_TOKEN}"}}
	for _, c := range table() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := testLinks(t)
			path, text := c.file0(l.System), fixture(t, c)
			write(t, path, text)
			ch, err := l.Link(c.name, Wanted{Name: "usher", Server: server})
			if c.name == "claude" {
				if err == nil {
					t.Error("Claude Desktop was given an address")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := ch.Apply(); err != nil {
				t.Fatal(err)
			}
			survey, err := l.Survey(c.name)
			if err != nil || len(survey[0].Linked) != 1 || survey[0].Linked[0].Server.URL != server.URL {
				t.Errorf("%+v, %v\n%s", survey, err, ch.Entry)
			}
			mustUnlink(t, l, c.name)
			if read(t, path) != text {
				t.Error("not what it was")
			}
		})
	}
}
