package config

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a home and a project in temporary directories.
type world struct {
	t    *testing.T
	home string
	work string // the working directory, inside the repository
	repo string
	env  map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root := t.TempDir()
	w := &world{t: t, home: filepath.Join(root, "home"), repo: filepath.Join(root, "repo"), env: map[string]string{}}
	w.work = filepath.Join(w.repo, "a", "b")
	for _, dir := range []string{w.home, w.work, filepath.Join(w.repo, ".git")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) userFile() string { return filepath.Join(w.home, ".config", "usher", "mcp.json") }

func (w *world) write(path, text string) string {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) system() System {
	return System{Home: w.home, Workdir: w.work, GOOS: "linux", LookupEnv: func(name string) (string, bool) {
		v, ok := w.env[name]
		return v, ok
	}}
}

func (w *world) load() *Config {
	w.t.Helper()
	c, err := Load(LoadOptions{System: w.system()})
	if err != nil {
		w.t.Fatalf("Load: %v", err)
	}
	return c
}

// loadText loads text as a --config file.
func loadText(t *testing.T, text string) *Config {
	t.Helper()
	w := newWorld(t)
	path := w.write(filepath.Join(w.home, "mcp.json"), text)
	c, _ := Load(LoadOptions{System: w.system(), File: path})
	return c
}

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

func names(servers []Server) string {
	var out []string
	for _, s := range servers {
		out = append(out, s.Name)
	}
	return strings.Join(out, " ")
}

// dump prints a value for a golden file.
func dump(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(b) + "\n"
}
