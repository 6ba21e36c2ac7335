package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
)

// What was moved into usher comes back: with the file as it was, and into a file
// that was touched since.
func TestMovedServersComeBack(t *testing.T) {
	for _, c := range table() {
		for _, touched := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s touched %v", c.name, touched), func(t *testing.T) {
				t.Parallel()
				moveAndBack(t, c, touched)
			})
		}
	}
}

func moveAndBack(t *testing.T, c client, touched bool) {
	l := testLinks(t)
	path, text := c.file0(l.System), fixture(t, c)
	write(t, path, text)
	found, err := Find(l.System, c.name)
	if err != nil || found[0].Err != nil {
		t.Fatal(err, found[0].Err)
	}
	before := originals(t, c, path)
	var ours []config.Server
	for _, im := range found[0].Servers {
		ours = append(ours, im.Server)
	}
	var moves []string
	for _, name := range Covered(found[0], ours) {
		if before[name] { // Claude Code has others, of this project alone
			moves = append(moves, name)
		}
	}
	if len(moves) == 0 {
		t.Fatal("nothing to move")
	}
	mustLink(t, l, c.name, Wanted{Name: "usher", Server: program0, Move: moves})
	for name := range originals(t, c, path) {
		if slices.Contains(moves, name) {
			t.Errorf("%s is still there", name)
		}
	}
	if touched {
		comment := map[syntax.Format]string{syntax.JSON: "// new\n", syntax.TOML: "# new\n", syntax.YAML: "# new\n"}
		write(t, path, comment[c.format]+read(t, path))
	}
	kinds := mustUnlink(t, l, c.name)
	if diff := cmp.Diff(before, originals(t, c, path)); diff != "" {
		t.Errorf("%v (-want +got):\n%s", kinds, diff)
	}
	if !touched && read(t, path) != text {
		t.Error("not what it was")
	}
}

// originals are the names of the entries in a file.
func originals(t *testing.T, c client, path string) map[string]bool {
	t.Helper()
	tree, err := syntax.Parse(path, []byte(read(t, path)), c.format)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := syntax.Lookup(tree, c.keys[0])
	out := map[string]bool{}
	for name := range list {
		out[name] = true
	}
	return out
}

func TestLinkUpdates(t *testing.T) {
	l := testLinks(t)
	path := filepath.Join(l.System.Home, ".cursor", "mcp.json")
	const text = "{\n  // mine\n  \"mcpServers\": {}\n}\n"
	write(t, path, text)
	mustLink(t, l, "cursor", Wanted{Name: "usher", Server: program0})
	moved := program0
	moved.Command = "/usr/local/bin/usher"
	ch := mustLink(t, l, "cursor", Wanted{Name: "usher", Server: moved})
	if ch.Kind != LinkUpdate || ch.Was != "/opt/usher/bin/usher serve" {
		t.Errorf("%s, was %q", ch.Kind, ch.Was)
	}
	if kinds := mustUnlink(t, l, "cursor"); kinds[0] != LinkRestore || read(t, path) != text {
		t.Errorf("%v\n%s", kinds, read(t, path))
	}

	// Updated in a file that was touched: what to go back to is that file.
	mustLink(t, l, "cursor", Wanted{Name: "usher", Server: program0})
	write(t, path, strings.Replace(read(t, path), "mine", "yours", 1))
	mustLink(t, l, "cursor", Wanted{Name: "usher", Server: moved})
	if kinds := mustUnlink(t, l, "cursor"); kinds[0] != LinkRestore || !strings.Contains(read(t, path), "yours") || strings.Contains(read(t, path), "usher") {
		t.Errorf("%v\n%s", kinds, read(t, path))
	}
}

func TestLinkRefuses(t *testing.T) {
	tests := []struct{ name, client, text, want string }{
		{"somebody else's entry", "cursor", `{"mcpServers": {"usher": {"command": "npx", "args": ["theatre"]}}}`, "--name"},
		{"no JSON", "cursor", `{"mcpServers": {`, "mcp.json:1"},
		{"no TOML", "codex", "[mcp_servers\n", "config.toml:1"},
		{"an inline table", "codex", "mcp_servers = { a = { command = \"x\" } }\n", "cannot edit"},
		{"a list in flow style", "goose", "extensions: {a: {type: stdio, cmd: x}}\n", "cannot edit"},
		{"two documents", "goose", "a: 1\n---\nb: 2\n", "cannot edit"},
		{"no object", "cursor", `{"mcpServers": [1]}`, "object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := testLinks(t)
			c, _ := byClient(tt.client)
			path := c.file0(l.System)
			write(t, path, tt.text)
			_, err := l.Link(tt.client, Wanted{Name: "usher", Server: program0})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
			if read(t, path) != tt.text {
				t.Error("the file was changed")
			}
		})
	}
	if _, err := testLinks(t).Link("emacs", Wanted{Name: "usher", Server: program0}); err == nil {
		t.Error("an unknown client was linked")
	}
}

// A file that changes between the plan and the writing is left alone, and a link
// into another directory stays a link.
func TestLinkIsCareful(t *testing.T) {
	l := testLinks(t)
	path := filepath.Join(l.System.Home, ".cursor", "mcp.json")
	write(t, path, "{}\n")
	ch, err := l.Link("cursor", Wanted{Name: "usher", Server: program0})
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "{ }\n")
	if err := ch.Apply(); err == nil || read(t, path) != "{ }\n" {
		t.Errorf("%v, %q", err, read(t, path))
	}
	if kinds := mustUnlink(t, l, "cursor"); kinds[0] != LinkForget || read(t, path) != "{ }\n" {
		t.Error(kinds)
	}
	real := filepath.Join(l.System.Home, "dotfiles", "mcp.json")
	write(t, real, "{}\n")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, path); err != nil {
		t.Fatal(err)
	}
	mustLink(t, l, "cursor", Wanted{Name: "usher", Server: program0})
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(read(t, real), "usher") {
		t.Errorf("%v, %v", info, err)
	}
	mustUnlink(t, l, "cursor")
	if info, _ := os.Lstat(path); info.Mode()&os.ModeSymlink == 0 || read(t, real) != "{}\n" {
		t.Error("the link is gone, or the file is not what it was")
	}
	if info, _ := os.Stat(real); info.Mode().Perm() != 0o600 {
		t.Error("its mode changed")
	}
}

// What belongs to the entry behind ours stays with it.
func TestRemoveLeavesTheNeighbours(t *testing.T) {
	tests := []struct{ client, text, want string }{
		{"goose", "extensions:\n  a:\n    cmd: x\n  usher:\n    type: stdio\n    cmd: usher\n    args: [serve]\n\n  # of b\n  b:\n    cmd: y\n", "extensions:\n  a:\n    cmd: x\n\n  # of b\n  b:\n    cmd: y\n"},
		{"continue", "mcpServers:\n  - name: usher\n    command: usher\n    args: [serve]\n  # of b\n  - command: y\n    name: b\nrules: []\n", "mcpServers:\n  # of b\n  - command: y\n    name: b\nrules: []\n"},
		{"codex", "[mcp_servers.usher]\ncommand = \"usher\"\nargs = [\"serve\"]\n\n[mcp_servers.usher.env]\nA = \"b\"\n\n# of b\n[mcp_servers.b]\ncommand = \"y\"\n", "# of b\n[mcp_servers.b]\ncommand = \"y\"\n"},
		{"vibe", "[[mcp_servers]]\nname = \"usher\"\ncommand = \"usher\"\nargs = [\"serve\"]\n\n# of b\n[[mcp_servers]]\nname = \"b\"\n", "# of b\n[[mcp_servers]]\nname = \"b\"\n"},
		{"cursor", "{\"mcpServers\": {\n  \"usher\": {\"command\": \"usher\", \"args\": [\"serve\"]},\n  // of b\n  \"b\": {\"command\": \"y\"}\n}}\n", "{\"mcpServers\": {\n  // of b\n  \"b\": {\"command\": \"y\"}\n}}\n"},
	}
	for _, tt := range tests {
		l := testLinks(t)
		c, _ := byClient(tt.client)
		path := c.file0(l.System)
		write(t, path, tt.text)
		kinds := mustUnlink(t, l, tt.client)
		if diff := cmp.Diff(tt.want, read(t, path)); diff != "" || len(kinds) != 1 {
			t.Errorf("%s: %v (-want +got):\n%s", tt.client, kinds, diff)
		}
	}
}

// A link whose record is lost, or that was made by hand, is undone too.
func TestUnlinkWithoutRecord(t *testing.T) {
	l := testLinks(t)
	path := filepath.Join(l.System.Home, ".cursor", "mcp.json")
	write(t, path, "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}, // keep\n    \"hub\": {\"command\": \"usher\", \"args\": [\"serve\"]}\n  }\n}\n")
	if kinds := mustUnlink(t, l, "cursor"); len(kinds) != 1 || kinds[0] != LinkRemove {
		t.Error(kinds)
	}
	if got := read(t, path); strings.Contains(got, "usher") || !strings.Contains(got, "// keep") {
		t.Errorf("%s", got)
	}
}

func FuzzSheets(f *testing.F) {
	f.Add(0, "{\"mcpServers\": {\"a\": {}}}")
	f.Add(1, "[mcp_servers.a]\ncommand = \"x\"\n")
	f.Add(2, "[[mcp_servers]]\nname = \"a\"\n[mcp_servers.env]\nA = \"b\"\n")
	f.Add(3, "extensions:\n  a:\n    cmd: x\n  usher: {}\n")
	f.Add(4, "mcpServers:\n- name: a\n- name: usher\n  command: |\n    x\n")
	names := []string{"cursor", "codex", "vibe", "goose", "continue"}
	f.Fuzz(func(t *testing.T, which int, text string) {
		c, _ := byClient(names[uint(which)%uint(len(names))])
		x := &exporting{client: c}
		entry := c.write(x, program0.WithDefaults())
		linked, err := syntax.Edit(c.location(), "f", []byte(text), []string{"usher"}, func(s syntax.Sheet) error { return s.Put("usher", entry) })
		if err != nil {
			return // refused, and nothing written
		}
		tree, err := syntax.Parse("f", linked, c.format)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := entryIn(c, config.System{Home: "/h", Workdir: "/w"}, tree, "usher"); !ok || s.Command != program0.Command {
			t.Fatalf("no entry in\n%s", linked)
		}
		back, err := syntax.Edit(c.location(), "f", linked, []string{"usher"}, func(s syntax.Sheet) error { return s.Remove("usher", false) })
		if err != nil {
			t.Fatalf("what was written cannot be taken out: %v\n%s", err, linked)
		}
		if tree, err = syntax.Parse("f", back, c.format); err != nil {
			t.Fatal(err)
		}
		if _, ok := entryIn(c, config.System{Home: "/h", Workdir: "/w"}, tree, "usher"); ok {
			t.Fatalf("still there:\n%s", back)
		}
	})
}
