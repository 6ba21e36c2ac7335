package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config/jsonc"
)

func TestLayers(t *testing.T) {
	w := newWorld(t)
	w.write(w.userFile(), `{"mcpServers": {
		"both": {"command": "user"}, "only-user": {"url": "https://u.example/mcp"}},
		"usher": {"maxConnected": 3, "bulk": {"concurrency": 2}, "policy": {"allow": ["*"], "deny": ["x/y"]}}}`)
	project := w.write(filepath.Join(w.repo, ".mcp.json"), `{"mcpServers": {
		"both": {"command": "project"}, "only-project": {"url": "https://p.example/mcp"}},
		"usher": {"maxConnected": 99, "store": "postgres://evil", "policy": {"allow": ["**"], "deny": ["p/*"]}}}`)

	c := w.load()
	if got := names(c.Servers); got != "both only-project only-user" {
		t.Errorf("servers = %q", got)
	}
	both, _ := c.Server("both")
	want := Origin{File: project, Line: 2, Column: 3, Layer: LayerProject, Shadows: w.userFile() + ":2"}
	if diff := cmp.Diff(want, both.Origin); diff != "" {
		t.Errorf("origin (-want +got):\n%s", diff)
	}
	if both.Command != "project" || !both.NeedsApproval() {
		t.Errorf("both = %q, needs approval %v", both.Command, both.NeedsApproval())
	}
	if c.Usher.MaxConnected != 3 || c.Usher.Store != "" || len(c.Usher.Policy.Allow) != 1 {
		t.Errorf("a project file changed trusted settings: %+v", c.Usher)
	}
	if got := len(c.Usher.Policy.Deny); got != 2 {
		t.Errorf("%d deny rules, want those of both files", got)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Msg, "only usher.policy.deny") {
		t.Errorf("warnings = %v", c.Warnings)
	}

	flag := w.write(filepath.Join(w.home, "other.json"), `{"servers": {"z": {"command": "z"}}}`)
	c, err := Load(LoadOptions{System: w.system(), File: flag})
	if err != nil || names(c.Servers) != "z" || c.Servers[0].Origin.Layer != LayerFlag {
		t.Errorf("--config: %v %v", names(c.Servers), err)
	}
	if c.Servers[0].NeedsApproval() {
		t.Error("a server from --config is held back")
	}
}

// An agent with a shell can pass --config or set a variable; neither removes the user's
// deny rules.
func TestUserDenyRulesAlwaysApply(t *testing.T) {
	w := newWorld(t)
	user := w.write(w.userFile(), `{"mcpServers": {"mine": {"command": "x"}},
		"usher": {"maxConnected": 3, "policy": {"allow": ["a"], "deny": ["github/delete_*"]}}}`)
	flag := w.write(filepath.Join(w.home, "other.json"), `{"servers": {"github": {"command": "z"}}, "usher": {"policy": {"deny": ["x"]}}}`)
	load := func(file string) *Config {
		t.Helper()
		c, err := Load(LoadOptions{System: w.system(), File: file})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	patterns := func(c *Config) string {
		var out []string
		for _, r := range c.Usher.Policy.Deny {
			out = append(out, r.Pattern)
		}
		return strings.Join(out, " ")
	}

	c := load(flag)
	if got := patterns(c); got != "x github/delete_*" {
		t.Fatalf("with --config: deny rules %q", got)
	}
	if last := c.Usher.Policy.Deny[1].Origin; last.File != user || last.Line != 2 || last.Layer != LayerUser {
		t.Errorf("the rule of the user file has the origin %+v", last)
	}
	if names(c.Servers) != "github" || len(c.Usher.Policy.Allow) != 0 || c.Usher.MaxConnected == 3 || c.Usher.Problem != nil {
		t.Errorf("more of the user file is used than its deny rules: %q, %+v", names(c.Servers), c.Usher)
	}
	if got := strings.Join(c.Watch, " "); got != flag+" "+user {
		t.Errorf("watched: %q", got)
	}
	if got := patterns(load(user)); got != "github/delete_*" {
		t.Errorf("the user file as --config: deny rules %q", got)
	}

	w.env = map[string]string{"USHER_POLICY_DENY": "y"}
	if got := patterns(load("")); got != "github/delete_* y" {
		t.Errorf("with a variable: deny rules %q", got)
	}
	w.env["USHER_POLICY_DENY"] = ""
	if got := patterns(load(flag)); got != "x github/delete_*" {
		t.Errorf("with an empty variable: deny rules %q", got)
	}
	w.env = nil

	w.write(w.userFile(), `{"usher": {"policy": {"deny": ["github/delete_*"`)
	if c := load(flag); c.Usher.Problem == nil {
		t.Error("the rules of a broken user file are unknown, and calls are not blocked")
	}
	w.write(w.userFile(), `{"usher": {"policy": {"deny": "all"}}}`)
	if c := load(flag); c.Usher.Problem == nil {
		t.Error("a deny rule that cannot be parsed does not block calls")
	}
	if err := os.Remove(w.userFile()); err != nil {
		t.Fatal(err)
	}
	if c := load(flag); c.Usher.Problem != nil || patterns(c) != "x" {
		t.Errorf("without a user file: %v, deny rules %q", c.Usher.Problem, patterns(c))
	}
}

func TestProjectSearch(t *testing.T) {
	body := func(name string) string { return `{"mcpServers": {"` + name + `": {"url": "https://x.example"}}}` }
	tests := []struct {
		name  string
		files map[string]string // relative to the repository
		noGit bool
		want  string
	}{
		{"none", nil, false, ""},
		{"root", map[string]string{".mcp.json": "root"}, false, "root"},
		{"nearest wins", map[string]string{".mcp.json": "root", "a/.mcp.json": "near"}, false, "near"},
		{"usher directory", map[string]string{"a/b/.usher/mcp.json": "dir"}, false, "dir"},
		{"both in one directory", map[string]string{".mcp.json": "one", ".usher/mcp.json": "two"}, false, "one two"},
		{"above the repository", map[string]string{"../.mcp.json": "planted"}, false, ""},
		{"no repository: not above", map[string]string{".mcp.json": "planted"}, true, ""},
		{"no repository: here", map[string]string{"a/b/.mcp.json": "here"}, true, "here"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if tt.noGit {
				if err := os.Remove(filepath.Join(w.repo, ".git")); err != nil {
					t.Fatal(err)
				}
			}
			for path, name := range tt.files {
				w.write(filepath.Join(w.repo, path), body(name))
			}
			if got := names(w.load().Servers); got != tt.want {
				t.Errorf("servers = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	c := loadText(t, `{"mcpServers": {"a": {"command": "x"}}}`)
	got, ok := c.Server("a")
	if !ok || got.Problem != nil {
		t.Fatalf("a: %v %v", ok, got.Problem)
	}
	lazy := true
	got.Origin = Origin{}
	want := Server{
		Name: "a", Transport: TransportStdio, Command: "x", Lazy: &lazy, KeepAlive: 5 * time.Minute,
		Supervision: Supervision{5, 30 * time.Second, 5, 5 * time.Minute, 0, RetrySafe},
		Timeouts:    Timeouts{30 * time.Second, 30 * time.Second, 60 * time.Second},
		Pins:        "block", MaxMessageBytes: 16 << 20,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEveryKey(t *testing.T) {
	text, err := os.ReadFile("testdata/full.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	c := loadText(t, string(text))
	if len(c.Warnings) > 0 {
		t.Errorf("warnings: %v", c.Warnings)
	}
	if c.Usher.Problem != nil {
		t.Errorf("settings: %v", c.Usher.Problem)
	}
	for i, s := range c.Servers {
		if s.Problem != nil {
			t.Errorf("%s: %v", s.Name, s.Problem)
		}
		c.Servers[i].Origin.File = ""
	}
	strip := func(rules []Rule) {
		for i := range rules {
			rules[i].Origin.File = ""
		}
	}
	strip(c.Usher.Policy.Allow)
	strip(c.Usher.Policy.Deny)
	golden(t, "full.golden", dump(c.Servers)+dump(c.Usher)+dump(c.Inputs))

	// What Entry writes reads back as the same.
	for _, s := range c.Servers {
		raw, err := s.Entry()
		if err != nil {
			t.Fatal(err)
		}
		again := loadText(t, `{"mcpServers": {"`+s.Name+`": `+string(raw)+`}}`)
		o, _ := again.Server(s.Name)
		o.Origin, s.Origin = Origin{}, Origin{}
		if diff := cmp.Diff(s, o); diff != "" {
			t.Errorf("%s through Entry (-want +got):\n%s", s.Name, diff)
		}
	}
}

func TestOneBadServer(t *testing.T) {
	c := loadText(t, `{"mcpServers": {
		"good": {"command": "x"},
		"neither": {},
		"both": {"command": "x", "url": "https://x.example"},
		"scheme": {"url": "file:///etc/passwd"},
		"ws": {"type": "ws", "url": "https://x.example"},
		"kind": {"type": "http", "command": "x"},
		"args": {"command": "x", "args": "-y"},
		"dup": {"command": "x", "command": "y"},
		"pins": {"command": "x", "pins": "soon"},
		"placeholder": {"command": "x", "env": {"A": "${sekret:B}"}},
		"header": {"url": "https://x.example", "headers": {"A B": "c"}},
		"header-value": {"url": "https://x.example", "headers": {"A": "b\nc: d"}},
		"a/b": {"command": "x"},
		"a@b": {"command": "x"},
		"a b": {"command": "x"},
		"twice": {"command": "x"},
		"twice": {"command": "y"},
		"object": 7,
		"off": {"disabled": true}
	}}`)
	for _, s := range c.Servers {
		good := s.Name == "good" || s.Name == "off"
		if good != (s.Problem == nil) {
			t.Errorf("%s: problem = %v", s.Name, s.Problem)
		}
		if e, ok := errors.AsType[*jsonc.Error](s.Problem); !good && (!ok || e.Line == 0 || e.Excerpt == "") {
			t.Errorf("%s: the problem has no place: %v", s.Name, s.Problem)
		}
	}
	if len(c.Servers) != 18 {
		t.Errorf("%d servers", len(c.Servers))
	}
}

func TestBrokenFileLeavesOthers(t *testing.T) {
	w := newWorld(t)
	w.write(w.userFile(), `{"mcpServers": {"mine": {"command": "x"}}}`)
	w.write(filepath.Join(w.repo, ".mcp.json"), `{"mcpServers": {"theirs": }}`)
	c := w.load()
	if names(c.Servers) != "mine" || len(c.Files) != 2 || c.Files[0].Err != nil || c.Files[1].Err == nil {
		t.Fatalf("servers %q, files %+v", names(c.Servers), c.Files)
	}
	if c.Usher.Problem != nil {
		t.Errorf("a broken project file blocks trusted settings: %v", c.Usher.Problem)
	}

	w = newWorld(t)
	w.write(w.userFile(), `{"usher": {"policy": {"deny": ["*"]}}`)
	w.write(filepath.Join(w.repo, ".mcp.json"), `{"mcpServers": {"theirs": {"url": "https://x.example"}}}`)
	c = w.load()
	if names(c.Servers) != "theirs" || c.Usher.Problem == nil {
		t.Errorf("servers %q, problem %v: lost deny rules must be reported", names(c.Servers), c.Usher.Problem)
	}

	w = newWorld(t)
	w.write(w.userFile(), `nonsense`)
	if c, err := Load(LoadOptions{System: w.system()}); err == nil || c == nil {
		t.Errorf("nothing usable: %v, %v", c, err)
	}
	if c, err := Load(LoadOptions{System: w.system(), File: "absent.json"}); err == nil || c == nil {
		t.Errorf("absent --config: %v, %v", c, err)
	}
}

func TestUnknownKeysWarn(t *testing.T) {
	c := loadText(t, `{"mcpServer": {}, "$schema": "x", "mcpServers": {"a": {"command": "x", "arg": [], "x-note": 1,
		"timeouts": {"cal": 1}, "Trust": true}}, "usher": {"bulk": {"concurency": 1}, "zzzzzz": 1}}`)
	var got []string
	for _, w := range c.Warnings {
		got = append(got, w.Msg)
	}
	want := []string{
		`unknown key "mcpServer" in the file is ignored; did you mean "mcpServers"?`,
		`unknown key "arg" in server "a" is ignored; did you mean "args"?`,
		`unknown key "cal" in timeouts is ignored; did you mean "call"?`,
		`unknown key "Trust" in server "a" is ignored; did you mean "trust"?`,
		`unknown key "concurency" in usher.bulk is ignored; did you mean "concurrency"?`,
		`unknown key "zzzzzz" in usher is ignored`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Usher.Problem != nil || c.Servers[0].Problem != nil {
		t.Error("an unknown key is fatal")
	}
}
