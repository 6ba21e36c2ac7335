package clients

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/test/need"
)

// inspect runs the command line of the MCP Inspector and returns what it prints.
func (w *world) inspect(t *testing.T, args ...string) string {
	t.Helper()
	script := filepath.Join(need.Package(t, "@modelcontextprotocol/inspector"), "clients", "launcher", "build", "index.js")
	c := exec.CommandContext(t.Context(), need.Node(t), append([]string{script, "--cli", "--quiet", "--format", "json"}, args...)...)
	c.Env, c.Dir = w.env(), w.home
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("inspector %q: %v\n%s%s", args, err, out.String(), errs.String())
	}
	if !json.Valid(out.Bytes()) {
		t.Fatalf("inspector %q: %s", args, out.String())
	}
	return out.String()
}

// The command line of the MCP Inspector in both eras, over stdio and HTTP: one small
// tool or all of them, calls, prompts and resources.
func TestInspector(t *testing.T) {
	w := newWorld(t)
	url := strings.TrimSuffix(w.gateway(), "/mcp")
	meta, direct, single := []string{url + "/meta/mcp"}, []string{url + "/direct/mcp"}, []string{url + "/servers/old/mcp"}
	stdio := []string{w.program, "serve", "--surface", "direct"}
	tests := []struct {
		long   bool // only in the long form: each run takes a second
		name   string
		era    string
		target []string
		args   []string
		want   string
	}{
		{false, "one tool for all", "modern", meta, []string{"--method", "tools/list"}, `"name":"mcp"`},
		{true, "call through it", "legacy", meta, []string{"--method", "tools/call", "--tool-name", "mcp", "--tool-args-json", `{"action":"call","server":"old","tool":"add","arguments":{"a":1,"b":2}}`}, `"sum":3`},
		{true, "list", "modern", direct, []string{"--method", "tools/list"}, `"name":"new__echo"`},
		{false, "call", "modern", direct, []string{"--method", "tools/call", "--tool-name", "old__add", "--tool-arg", "a=1", "b=2"}, `"sum":3`},
		{false, "prompt", "modern", direct, []string{"--method", "prompts/get", "--prompt-name", "new__greet", "--prompt-args", "who=x"}, "Say hello."},
		{false, "resource", "legacy", single, []string{"--method", "resources/read", "--uri", "fake://readme"}, "fake://readme"},
		{true, "list over stdio", "legacy", stdio, []string{"--method", "tools/list"}, `"name":"old__echo"`},
		{false, "call over stdio", "modern", stdio, []string{"--method", "tools/call", "--tool-name", "new__echo", "--tool-arg", "a=b"}, `\"a\":\"b\"`},
	}
	for _, tt := range tests {
		if tt.long && !need.Proof() {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// It gives what it starts an environment of its own.
			args := append([]string{"-e", "USHER_HOME=" + w.home, "--protocol-era", tt.era}, tt.target...)
			got := w.inspect(t, append(args, tt.args...)...)
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(got)); err != nil || !strings.Contains(compact.String(), tt.want) {
				t.Errorf("%s is missing in\n%s", tt.want, got)
			}
		})
	}
}
