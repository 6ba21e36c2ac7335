package clients

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/config"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// testSystem is a system whose files are those a test writes.
func testSystem(t *testing.T, goos string, env map[string]string) config.System {
	t.Helper()
	root := t.TempDir()
	return config.System{
		Home: filepath.Join(root, "home"), Workdir: filepath.Join(root, "project"), GOOS: goos,
		LookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// show prints what was found, in a form that does not depend on the machine.
func show(t *testing.T, found []Found) string {
	t.Helper()
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "client %s, project %v, error %v\n", f.Client, f.Project, f.Err)
		for _, im := range f.Servers {
			raw, err := im.Server.Entry()
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			enc := json.NewEncoder(&out)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(raw); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "server %s (%q, %s) %s", im.Server.Name, im.Original, im.Server.Transport, out.String())
			for _, n := range im.Notes {
				fmt.Fprintf(&b, "  note: %s\n", n)
			}
		}
		for _, s := range f.Skipped {
			fmt.Fprintf(&b, "skipped %q: %s\n", s.Name, s.Reason)
		}
		for _, in := range f.Inputs {
			fmt.Fprintf(&b, "input %+v\n", in)
		}
	}
	return b.String()
}

// Every client's fixture is put where that client keeps its file, and found.
func TestImport(t *testing.T) {
	fixtures, err := filepath.Glob("testdata/in/*")
	if err != nil || len(fixtures) < 15 {
		t.Fatal(fixtures, err)
	}
	for _, fixture := range fixtures {
		name := strings.TrimSuffix(filepath.Base(fixture), filepath.Ext(fixture))
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(fixture)
			if err != nil {
				t.Fatal(err)
			}
			sys := testSystem(t, "linux", nil)
			c, ok := byClient(name)
			if !ok {
				t.Fatal("no such client")
			}
			body := strings.ReplaceAll(string(text), `"/project"`, `"`+sys.Workdir+`"`)
			write(t, c.files(sys)[0].path, body)
			found, err := Find(sys, name)
			if err != nil {
				t.Fatal(err)
			}
			out := show(t, found)
			out = strings.NewReplacer(sys.Home, "HOME", sys.Workdir, "PROJECT").Replace(out)
			golden(t, "import/"+name+".golden", out)

			// Read as a file of unknown origin it means the same, where its
			// shape gives it away.
			stray := filepath.Join(sys.Workdir, "stray"+filepath.Ext(fixture))
			write(t, stray, body)
			f, err := ReadFile(sys, stray)
			if err != nil {
				t.Fatal(err)
			}
			guess := map[string]string{"claude": "claude-code", "cline": "claude-code"}
			if want, special := guess[name]; !special && f.Client != name || special && f.Client != want {
				t.Errorf("taken for a file of %s", f.Client)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	sysFor := func(goos string, env map[string]string) config.System {
		return config.System{Home: "/h", Workdir: "/w", GOOS: goos, LookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}
	}
	var b strings.Builder
	for _, s := range []struct {
		name string
		sys  config.System
	}{
		{"linux", sysFor("linux", nil)},
		{"darwin", sysFor("darwin", nil)},
		{"windows", sysFor("windows", map[string]string{"APPDATA": "/h/AppData/Roaming"})},
		{"variables", sysFor("linux", map[string]string{
			"CLAUDE_CONFIG_DIR": "/cc", "CODEX_HOME": "/cx", "OPENCODE_CONFIG": "/oc.json", "OPENCODE_CONFIG_DIR": "/ocd", "XDG_CONFIG_HOME": "/xdg",
		})},
	} {
		fmt.Fprintf(&b, "== %s\n", s.name)
		for _, c := range table() {
			for _, at := range c.files(s.sys) {
				fmt.Fprintf(&b, "%-12s %s\n", c.name, filepath.ToSlash(at.path))
			}
		}
	}
	golden(t, "places.golden", b.String())
}

func TestFindReportsWhatItCannotRead(t *testing.T) {
	sys := testSystem(t, "linux", nil)
	write(t, filepath.Join(sys.Home, ".cursor", "mcp.json"), `{"mcpServers": {`)
	write(t, filepath.Join(sys.Home, ".codex", "config.toml"), "[mcp_servers\nx = ")
	write(t, filepath.Join(sys.Home, ".config", "goose", "config.yaml"), "a: [b\nc: ]d: {")
	write(t, filepath.Join(sys.Workdir, ".vscode", "mcp.json"), `{"servers": {"ok": {"command": "x"}}}`)
	if err := os.MkdirAll(filepath.Join(sys.Home, ".gemini", "settings.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	found, err := Find(sys)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range found {
		got[f.Client] = f.Err == nil
	}
	want := map[string]bool{"cursor": false, "codex": false, "goose": false, "gemini": false, "vscode": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Find(sys, "cursr"); err == nil || !strings.Contains(err.Error(), "cursor") {
		t.Errorf("unknown client: %v", err)
	}
	if _, err := ReadFile(sys, filepath.Join(sys.Workdir, ".vscode", "mcp.json")); err != nil {
		t.Error(err)
	}
	write(t, filepath.Join(sys.Workdir, "x.json"), `{"a": 1}`)
	if _, err := ReadFile(sys, "x.json"); err == nil {
		t.Error("a file without servers was read")
	}
}
