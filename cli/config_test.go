package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/person"
)

// world is a machine with nothing on it, for running commands in this process.
type world struct {
	t    *testing.T
	dir  string
	env  map[string]string
	in   io.Reader // a terminal when set
	tty  bool      // standard output is a terminal
	wide int

	errTTY bool   // standard error is a terminal
	token  string // the script token
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "usher")
	token, err := person.NewToken(home)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, dir: dir, env: map[string]string{"USHER_HOME": home, person.TokenVariable: token}, wide: 80, token: token}
}

func (w *world) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) read(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

func (w *world) run(args ...string) (code int, out, errs string) {
	w.t.Helper()
	var o, e bytes.Buffer
	world := cmdutil.IO{
		In: w.in, Out: &o, Err: &e, InTTY: w.in != nil, OutTTY: w.tty, ErrTTY: w.errTTY, Width: w.wide,
		System: config.System{Home: filepath.Join(w.dir, "home"), Workdir: w.dir, LookupEnv: func(name string) (string, bool) {
			v, ok := w.env[name]
			return v, ok
		}},
	}
	code = Run(w.t.Context(), args, world)
	return code, o.String(), e.String()
}

// deceits are texts that a terminal or an eye could be misled by.
var deceits = []string{"\x1b]52;c;ZXZpbA==\x07", "\x1b[2K\x1b[1A", "\u009b31m", "\u202egpj.exe", "\u2066x\u2069", "a\rb", "\U000e0041", "\u200b"}

func checkHarmless(t *testing.T, args []string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !utf8.ValidString(text) {
			t.Errorf("usher %q: output is not UTF-8: %q", args, text)
		}
		for _, r := range text {
			if cmdutil.IsHostile(r) {
				t.Errorf("usher %q: the output holds %U:\n%q", args, r, text)
				break
			}
		}
	}
}

// TestHarmlessOutput wants that no text of a file, a name or an argument reaches
// the terminal as something it would act on.
func TestHarmlessOutput(t *testing.T) {
	// All at once, and one that is not refused where the others are.
	for evil, terminals := range map[string][]bool{strings.Join(deceits, ""): {false, true}, "\u202egpj.exe": {false}} {
		quoted, err := cmdutil.JSONText(evil)
		if err != nil {
			t.Fatal(err)
		}
		q := strings.TrimSpace(string(quoted))
		w := newWorld(t)
		w.write("usher/mcp.json", `{"mcpServers": {
			"own": {"command": `+q+`, "args": [`+q+`], "env": {"A": `+q+`}, "title": `+q+`, "cwd": `+q+`, "tags": [`+q+`]},
			"web": {"url": "https://x.example/`+strings.Trim(q, `"`)+`", "headers": {"X-A": `+q+`}},
			`+q+`: {"url": "https://x.example"}, "odd": {`+q+`: 1, "url": "https://x.example", "pins": `+q+`}
		}, "usher": {"policy": {"deny": [`+q+`], "allow": [`+q+`]}}, `+q+`: 1}`)
		w.write(".mcp.json", `{"mcpServers": {"theirs": {"command": `+q+`, "args": [`+q+`], "env": {`+q+`: `+q+`}, "tools": {"deny": [`+q+`]}}}}`)
		w.write("home/.cursor/mcp.json", `{"mcpServers": {`+q+`: {"command": `+q+`, "args": [`+q+`], "env": {"B": `+q+`}, `+q+`: 2}, "bad": `+q+`}}`)
		w.write("broken.json", `{"mcpServers": {"x": `+q+` `+q+`}}`)
		for _, tty := range terminals {
			w.tty = tty
			for _, args := range [][]string{
				{"__complete", "remove", ""},
				{"__complete", "deny", "--remove", ""},
				{"list"},
				{"list", "--ok"},
				{"list", "--long"},
				{"list", "--json"},
				{"list", "--resolve"},
				{"list", evil},
				{"approve"},
				{"approve", "--json"},
				{"approve", "--all", "--yes"},
				{"approve", "--list"},
				{"approve", evil},
				{"approve", "--revoke", evil},
				{"allow", "--list"},
				{"deny", "--list"},
				{"deny", "--list", "--json"},
				{"deny", "--dry-run", evil},
				{"deny", "--remove", evil},
				{"import", "--dry-run"},
				{"import", "--json"},
				{"import", evil},
				{"import", "./" + evil},
				{"import", "./broken.json"},
				{"export", evil},
				{"export", "cursor", evil},
				{"remove", evil, "--dry-run"},
				{"remove", evil},
				{"remove", "own", "--dry-run"},
				{"add", evil, "https://x.example"},
				{"add", "n", evil},
				{"add", "n", "https://x.example/" + evil},
				{"add", "n", "https://x.example", "-H", evil},
				{"add", "n", "https://x.example", "-H", "X-B: " + evil, "--dry-run"},
				{"add", "n", "--dry-run", "--", evil, evil},
				{"add", "n", "-e", "=" + evil, "--", "x"},
				{"add", "n", "https://x.example", "-t", evil},
				{"add", "n", "https://x.example", "--allow-tool", "[" + evil},
				{"--config", "broken.json", "list"},
				{"--config", evil, "list"},
				{evil},
				{"list", "--" + evil},
				{"completion", evil},
			} {
				_, out, errs := w.run(args...)
				checkHarmless(t, args, out, errs)
			}
		}
	}
}

// TestSecretsStayHidden wants that neither a variable's value nor a literal
// credential is printed, but where a person has asked for it.
func TestSecretsStayHidden(t *testing.T) {
	const canary, literal = "canary-value-of-a-variable", "abc123secretvalue"
	w := newWorld(t)
	w.env["CANARY"] = canary
	w.write("usher/mcp.json", `{"mcpServers": {
		"web": {"url": "https://u:`+literal+`@x.example/mcp?token=`+literal+`", "headers": {"Authorization": "Bearer `+literal+`", "X-K": "${env:CANARY}"}, "oauth": {"clientSecret": "`+literal+`"}},
		"run": {"command": "x", "args": ["--api-key", "`+literal+`", "--token=`+literal+`", "${CANARY}"], "env": {"API_KEY": "`+literal+`", "K": "${CANARY}"}},
		"bad": {"url": 1, "headers": {"Authorization": "Bearer `+literal+`"}},
		"odd": {"command": "x", "args": ["--password" "`+literal+`"]}
	}}`)
	w.write("good.json", strings.Replace(w.read("usher/mcp.json"), `"--password" "`, `"--password", "`, 1))
	w.write("home/.cursor/mcp.json", w.read("good.json"))
	commands := [][]string{
		{"list"},
		{"list", "--ok"},
		{"list", "--long"},
		{"list", "--json"},
		{"import", "--dry-run"},
		{"import", "--json"},
		{"import", "--project", "--yes"},
		{"export", "cursor"},
		{"export", "codex"},
		{"export", "goose"},
		{"remove", "run", "--dry-run"},
		{"list", "web"},
		{"add", "web", "https://x.example", "-H", "Authorization: Bearer " + literal, "--dry-run", "--replace"},
		{"add", "n", "https://x.example", "-H", "Authorization: Bearer " + literal, "--project"},
		{"add", "n", "https://x.example", "-H", "Authorization: Bearer " + literal},
		{"add", "n", "https://x.example", "-H", "Authorization Bearer " + literal},
		{"add", "n", "x", "--token", literal},
		{"add", "n", "x", "--", "--token", literal},
		{"add", "m", "-e", "TOKEN=" + literal, "-e", "TOKEN=" + literal, "--", "x"},
		{"add", "m", "-e", "=" + literal, "--", "x"},
		{"add", "m", "--project", "-e", "TOKEN=" + literal, "--", "x"},
		{"approve", "--json"},
		{"-v", "list"},
		{"-v", "approve", "--list"},
	}
	for _, file := range []string{"usher/mcp.json", "good.json"} {
		for _, args := range commands {
			_, out, errs := w.run(append([]string{"--config", file}, args...)...)
			for _, secret := range []string{canary, literal} {
				if strings.Contains(out+errs, secret) {
					t.Errorf("usher --config %s %q prints %s:\n%s%s", file, args, secret, out, errs)
				}
			}
		}
	}
	if _, out, _ := w.run("--config", "good.json", "list", "--resolve"); !strings.Contains(out, canary) || !strings.Contains(out, literal) {
		t.Errorf("list --resolve does not show the values:\n%s", out)
	}
}

// TestApproveShowsAll wants every character of a definition on the screen, however
// narrow that is.
func TestApproveShowsAll(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 256)
	w := newWorld(t)
	w.tty, w.wide = true, 40
	w.write(".mcp.json", `{"mcpServers": {"a": {"command": "run", "args": ["`+long+`", "--quiet; rm -rf ~"]}}}`)
	code, out, _ := w.run("approve")
	if !strings.Contains(out, `"`+long+`"`) || !strings.Contains(out, `"--quiet; rm -rf ~"`) {
		t.Errorf("the definition is not shown in full:\n%s", out)
	}
	if code != cmdutil.ExitWaiting {
		t.Errorf("exit code %d, want %d", code, cmdutil.ExitWaiting)
	}
}

// TestApproveAsksForEach wants one answer for each server.
func TestApproveAsksForEach(t *testing.T) {
	w := newWorld(t)
	w.write(".mcp.json", `{"mcpServers": {"a": {"command": "run"}, "b": {"command": "run"}, "c": {"command": "run"}}}`)
	w.in = strings.NewReader("y\nno\nyes\n")
	code, _, errs := w.run("approve")
	if code != cmdutil.ExitWaiting {
		t.Errorf("exit code %d, want %d:\n%s", code, cmdutil.ExitWaiting, errs)
	}
	_, out, _ := w.run("list")
	var states []string
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		states = append(states, fields[0]+" "+fields[4])
	}
	want := []string{"NAME STATE", "a ok", "b held:", "c ok"}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestListFitsTerminal wants rows no wider than the terminal where they can be.
func TestListFitsTerminal(t *testing.T) {
	w := newWorld(t)
	w.tty, w.wide = true, 100
	w.write("usher/mcp.json", `{"mcpServers": {"a": {"command": "run", "args": ["`+strings.Repeat("word ", 100)+`"]}, "b": {"url": 7}}}`)
	_, out, _ := w.run("list")
	for line := range strings.Lines(out) {
		if n := cmdutil.TextWidth(strings.TrimRight(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestRootFor: the command that is made alone is the one of the whole tree.
func TestRootFor(t *testing.T) {
	var texts []string
	for _, build := range []func(*cmdutil.Factory) *cobra.Command{newRoot, func(f *cmdutil.Factory) *cobra.Command { return rootFor(f, []string{"call"}) }} {
		var out strings.Builder
		root := build(&cmdutil.Factory{IO: cmdutil.IO{Out: &out, Err: &out}})
		root.SetArgs([]string{"call", "--help"})
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, out.String())
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" || !strings.Contains(texts[0], "SERVER TOOL") {
		t.Errorf("help of call, whole tree against alone:\n%s", diff)
	}
}

// TestHelp wants a description and examples from every command.
func TestHelp(t *testing.T) {
	root := newRoot(&cmdutil.Factory{IO: cmdutil.IO{Out: io.Discard, Err: io.Discard}})
	for _, c := range root.Commands() {
		if c.Hidden || c.Name() == "help" {
			continue
		}
		w := newWorld(t)
		code, out, errs := w.run(c.Name(), "--help")
		if code != 0 || errs != "" || !strings.Contains(out, "Examples:") || !strings.Contains(out, "usher "+c.Name()) {
			t.Errorf("usher %s --help: code %d\n%s%s", c.Name(), code, out, errs)
		}
		if c.Short == "" || c.GroupID == "" {
			t.Errorf("usher %s: no short description or no group", c.Name())
		}
	}
	for _, name := range []string{"list", "approve", "import", "allow", "deny", "tools", "call", "version"} {
		if c, _, err := root.Find([]string{name}); err != nil || c.Flags().Lookup("json") == nil {
			t.Errorf("usher %s has no --json: %v", name, err)
		}
	}
}
