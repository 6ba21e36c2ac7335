package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
)

const canary = "CANARY1x9Zq7Lm3Tn8Vb2"

// severalClients is a machine with overlapping configurations.
func severalClients(t *testing.T) (config.System, []Found) {
	t.Helper()
	sys := testSystem(t, "linux", nil)
	write(t, filepath.Join(sys.Home, ".cursor", "mcp.json"), `{"mcpServers": {
		"github": {"command": "npx", "args": ["-y", "@x/github@1.2.3"], "env": {"GITHUB_TOKEN": "`+canary+`"}},
		"linear": {"url": "https://MCP.linear.app/mcp/"},
		"notes": {"url": "https://notes.example/mcp", "headers": {"Authorization": "Bearer `+canary+`"}}}}`)
	write(t, filepath.Join(sys.Home, ".codeium", "windsurf", "mcp_config.json"), `{"mcpServers": {
		"GitHub": {"command": "npx", "args": ["-y", "@x/github@latest"], "env": {"GITHUB_TOKEN": "`+canary+`"}},
		"github-work": {"command": "npx", "args": ["-y", "@x/github"], "env": {"GITHUB_TOKEN": "${env:WORK}"}},
		"notes": {"serverUrl": "https://other.example/mcp?api_key=`+canary+`"}}}`)
	write(t, filepath.Join(sys.Home, ".config", "Claude", "claude_desktop_config.json"), `{"mcpServers": {
		"lin": {"command": "npx", "args": ["-y", "mcp-remote", "https://mcp.linear.app/mcp"]}}}`)
	write(t, filepath.Join(sys.Workdir, ".vscode", "mcp.json"), `{"inputs": [{"type": "promptString", "id": "k", "password": true}],
		"servers": {"proj": {"command": "x", "env": {"K": "${input:k}"}}}}`)
	found, err := Find(sys)
	if err != nil {
		t.Fatal(err)
	}
	return sys, found
}

func planText(p *Plan, sys config.System) string {
	return strings.NewReplacer(sys.Home, "HOME", sys.Workdir, "PROJECT").Replace(p.String())
}

func TestPlan(t *testing.T) {
	sys, found := severalClients(t)
	target := filepath.Join(sys.Home, "mcp.json")
	p, err := NewPlan(found, Target{File: target})
	if err != nil {
		t.Fatal(err)
	}
	text := planText(p, sys)
	if strings.Contains(text, "CANARY") {
		t.Error("the plan shows a credential")
	}
	golden(t, "plan.golden", text)

	preview, err := p.Preview()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("a preview wrote the target")
	}
	if err := p.Apply(); err != nil {
		t.Fatal(err)
	}
	written, _ := os.ReadFile(target)
	if diff := cmp.Diff(string(preview), string(written)); diff != "" {
		t.Errorf("preview and result differ:\n%s", diff)
	}
	c, err := config.Load(config.LoadOptions{System: sys, File: target})
	if err != nil || len(c.Servers) != len(p.Add) || len(c.Warnings) > 0 {
		t.Errorf("the result does not load: %v, %d servers, %v", err, len(c.Servers), c.Warnings)
	}
	for _, s := range c.Servers {
		if s.Problem != nil {
			t.Errorf("%s: %v", s.Name, s.Problem)
		}
	}

	again, err := NewPlan(found, Target{File: target})
	if err != nil || len(again.Add) != 0 {
		t.Errorf("a second import would add %d: %v\n%s", len(again.Add), err, again)
	}
}

func TestPlanForProject(t *testing.T) {
	sys, found := severalClients(t)
	write(t, filepath.Join(sys.Home, ".config", "crush", "crush.json"),
		`{"mcp": {"stuck": {"command": "x", "env": {"A": "$(curl -H 'Authorization: Bearer `+canary+`')"}}}}`)
	extra, err := Find(sys, "crush")
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(sys.Workdir, ".mcp.json")
	write(t, target, "// ours\n{\n  \"mcpServers\": {\n    // keep\n    \"linear\": {\"url\": \"https://mcp.linear.app/mcp\"}\n  }\n}\n")
	p, err := NewPlan(append(found, extra...), Target{File: target, Project: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(); err != nil {
		t.Fatal(err)
	}
	written, _ := os.ReadFile(target)
	for what, text := range map[string]string{"file": string(written), "plan": p.String(), "dump": fmt.Sprintf("%+v %#v", p.Add, p.Add)} {
		if strings.Contains(text, "CANARY") {
			t.Errorf("a credential is in the %s:\n%s", what, text)
		}
	}
	for _, want := range []string{"// ours", "// keep", "${secret:github/GITHUB_TOKEN}", "Bearer ${secret:notes/Authorization}", "api_key=${secret:"} {
		if !strings.Contains(string(written), want) {
			t.Errorf("%q is missing in\n%s", want, written)
		}
	}
	moved := 0
	for _, n := range p.Add {
		for _, s := range n.Secrets {
			if s.Reveal() != canary {
				t.Errorf("%s moved %q", n.Server.Name, s.Reveal())
			}
			moved++
		}
	}
	if last := p.Skipped[len(p.Skipped)-1]; last.Name != "stuck" || !strings.Contains(last.Reason, "cannot be moved out") {
		t.Errorf("a server with a credential inside a command: %+v", last)
	}
	if moved < 3 {
		t.Errorf("%d credentials were moved", moved)
	}
}

func TestPlanReplaces(t *testing.T) {
	sys := testSystem(t, "linux", nil)
	write(t, filepath.Join(sys.Home, ".cursor", "mcp.json"), `{"mcpServers": {"a": {"command": "new"}}}`)
	target := filepath.Join(sys.Home, "mcp.json")
	write(t, target, `{"mcpServers": {"a": {"command": "old"}}}`)
	found, _ := Find(sys, "cursor")
	p, err := NewPlan(found, Target{File: target})
	if err != nil || len(p.Add) != 0 || len(p.Skipped) != 1 || !strings.Contains(p.Skipped[0].Reason, "another server called a") {
		t.Errorf("%v %+v", err, p)
	}
	p, err = NewPlan(found, Target{File: target, Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(target); !strings.Contains(string(text), `"new"`) || strings.Contains(string(text), `"old"`) {
		t.Errorf("%s", text)
	}
	write(t, target, `{"mcpServers": `)
	if _, err := NewPlan(found, Target{File: target}); err == nil {
		t.Error("a target that does not parse was taken")
	}
}

func TestNormaliseName(t *testing.T) {
	for in, want := range map[string]string{
		"github": "github", "GitHub Tools": "github-tools", "@scope/pkg": "scope-pkg", "a__b..c": "a-b-c", "日本": "server", "": "server",
		"-x-": "x", strings.Repeat("a", 100): strings.Repeat("a", 60), "Ünï": "n",
	} {
		got := NormaliseName(in)
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if err := config.CheckName(got); err != nil {
			t.Error(err)
		}
	}
}

func TestProgram(t *testing.T) {
	for line, want := range map[string]string{
		"npx -y mcp-remote@latest u":             "mcp-remote u",
		"npx --yes -p x mcp-remote u":            "mcp-remote u",
		"npx -c x":                               "npx -c x",
		"C:\\node\\npx.cmd mcp-remote u":         "mcp-remote u",
		"cmd /c npx -y @a/b@1.0 x":               "@a/b x",
		"pnpm dlx mcp-remote u":                  "mcp-remote u",
		"uvx --from x mcp-proxy u":               "mcp-proxy u",
		"uv tool run mcp-proxy==1.0 u":           "mcp-proxy u",
		"node /x/node_modules/mcp-remote/d.js u": "mcp-remote u",
		"/usr/local/bin/mcp-remote u":            "mcp-remote u",
		"npm install x":                          "npm install x",
		"npx":                                    "npx",
		"docker run -i --rm mcp/github":          "docker run -i --rm mcp/github",
	} {
		words := strings.Fields(line)
		name, rest := program(words[0], words[1:])
		if got := strings.Join(append([]string{name}, rest...), " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
