package clients

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
	"github.com/usher-mcp/usher/config/template"
)

const ours = `{"mcpServers": {
	"files": {"command": "npx", "args": ["-y", "@x/files", "${env:ROOT:-/srv}"], "env": {"TOKEN": "${env:TOKEN}", "KEY": "${secret:files/key}", "PLAIN": "a <b> & 'c'"}, "cwd": "/w"},
	"remote": {"url": "https://r.example/mcp", "headers": {"Authorization": "Bearer ${env:TOK}", "X-Key": "${KEY}", "X": "1"},
		"oauth": {"clientId": "id", "clientSecret": "${secret:s}", "scopes": ["a", "b"], "redirectUri": "http://localhost:8080/callback", "metadataUrl": "https://as/m"}},
	"sse": {"type": "sse", "url": "https://s.example/sse"},
	"off": {"command": "x", "disabled": true},
	"helped": {"url": "https://h.example/mcp", "headersFrom": "${cmd:print headers}"},
	"picky": {"command": "x", "args": ["$${literal}", "$HOME"], "tools": {"allow": ["a"], "deny": ["b"], "rename": {"c": "d"}}, "timeouts": {"connect": "5s", "call": "2m"}},
	"broken": {"command": 7}
}}`

func TestExport(t *testing.T) {
	c, err := config.Parse("mcp.json", []byte(ours), config.LayerUser)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range List() {
		t.Run(info.Name, func(t *testing.T) {
			text, notes, err := Export(info.Name, c.Servers)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "export/"+info.Name+".golden", string(text)+"---\n"+strings.Join(notes, "\n")+"\n")

			// What was written is a file that the client's reader takes.
			client, _ := byClient(info.Name)
			f := Found{}
			readText(&reading{client: client, sys: testSystem(t, "linux", nil), path: "/x/f", found: &f}, text)
			if f.Err != nil || len(f.Servers) < 4 || len(f.Skipped) > 0 {
				t.Errorf("read back: %v, %d servers, skipped %v", f.Err, len(f.Servers), f.Skipped)
			}
		})
	}
	if _, _, err := Export("emacs", nil); err == nil {
		t.Error("an unknown client was written")
	}
	if text, _, err := Export("claude", nil); err != nil || string(text) != "{\n  \"mcpServers\": {}\n}\n" {
		t.Errorf("nothing to export: %s, %v", text, err)
	}
}

// Keys without a place with us come back when a server goes home.
func TestForeignKeysComeHome(t *testing.T) {
	sys := testSystem(t, "linux", nil)
	path := filepath.Join(sys.Home, ".codeium", "windsurf", "mcp_config.json")
	write(t, path, `{"mcpServers": {"y": {"command": "npx", "alwaysAllow": ["z"]}}}`)
	found, err := Find(sys, "windsurf")
	if err != nil {
		t.Fatal(err)
	}
	for client, want := range map[string]bool{"windsurf": true, "cursor": false} {
		text, _, err := Export(client, []config.Server{found[0].Servers[0].Server})
		if err != nil || strings.Contains(string(text), "alwaysAllow") != want {
			t.Errorf("%s: %v\n%s", client, err, text)
		}
	}
}

func TestDialects(t *testing.T) {
	sys := config.System{Home: "/h", Workdir: "/w", GOOS: "linux", LookupEnv: func(string) (string, bool) { return "", false }}
	tests := []struct{ client, in, want string }{
		{"claude", "${A} $A", "$${A} $A"},
		{"codex", "${A} $A {env:A} %A%", "$${A} $A {env:A} %A%"},
		{"zed", "pa$$${w", "pa$$$$$${w"},
		{"claude-code", "${A}-${B:-c}-$D-${e f}", "${env:A}-${env:B:-c}-$D-$${e f}"},
		{"claude-code", "$env:A", "${env:A}"},
		{"claude-code", "${env:A}", "$${env:A}"},
		{"cursor", "${env:A} ${A} $A ${input:x}", "${env:A} $${A} $A $${input:x}"},
		{"vscode", "${input:x}", "${input:x}"},
		{"gemini", "$A ${B} $1 a$", "${env:A} ${env:B} $1 a$"},
		{"opencode", "{env:A}{env:B} ${A} {x}", "${env:A}${env:B} $${A} {x}"},
		{"opencode", "${env:A}", "$$${env:A}"},
		{"continue", "${{ secrets.A }}", "${secret:A}"},
		{"crush", "$(pass a)$B", "${cmd:pass a}${env:B}"},
	}
	for _, tt := range tests {
		c, _ := byClient(tt.client)
		got := c.dialect(&reading{client: c, sys: sys, path: "/d/f"}, tt.in)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s %q (-want +got):\n%s", tt.client, tt.in, diff)
		}
		if _, err := template.Parse(got); err != nil {
			t.Errorf("%s %q: %v", tt.client, tt.in, err)
		}
	}
}

func fuzzImport(f *testing.F, clients []string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	sys := config.System{Home: "/h", Workdir: "/w", GOOS: "linux", LookupEnv: func(string) (string, bool) { return "", false }}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, name := range clients {
			c, _ := byClient(name)
			found := Found{Client: name}
			readText(&reading{client: c, sys: sys, path: "/h/f", found: &found}, text)
			for _, im := range found.Servers {
				if err := im.Server.Validate(); err != nil {
					t.Fatalf("%s gave a server that is not valid: %v", name, err)
				}
				_, _ = identity(im.Server), credentials(im.Server)
			}
			p := &Plan{Target: Target{Project: true}}
			for _, im := range found.Servers {
				p.add(im, found, name, nil)
			}
			p.moveSecrets()
			_ = p.String()
			for _, n := range p.Add {
				out, _, err := Export(name, []config.Server{n.Server})
				if err != nil {
					t.Fatalf("export to %s: %v", name, err)
				}
				if c.format == syntax.YAML {
					continue // the writer is not ours
				}
				if _, err := syntax.Parse("f", out, c.format); err != nil {
					t.Fatalf("export to %s does not parse: %v\n%s", name, err, out)
				}
			}
		}
	})
}

func FuzzImportJSON(f *testing.F) {
	fuzzImport(f, []string{"claude", "claude-code", "cursor", "vscode", "gemini", "opencode", "zed", "copilot", "windsurf", "crush"},
		`{"mcpServers": {"a": {"command": "npx", "args": ["mcp-remote", "https://x", "--header", "A: ${B}"]}}}`,
		`{"servers": {"a": {"url": "https://x", "headers": {"A": "${input:k}"}}}, "inputs": [{"id": "k"}]}`,
		`{"mcp": {"a": {"type": "local", "command": ["x"], "oauth": false}}, "tools": {"a_*": false}}`,
		`{"context_servers": {"a": {"command": {"path": "x"}}}}`)
}

func FuzzImportTOML(f *testing.F) {
	fuzzImport(f, []string{"codex", "vibe"},
		"[mcp_servers.a]\ncommand = \"x\"\nenv = { A = \"b\" }\nenv_vars = [\"P\", { name = \"Q\" }]\n",
		"[mcp_servers.a]\nurl = \"https://x\"\nbearer_token_env_var = \"T\"\nstartup_timeout_sec = 1.5\nwhen = 1979-05-27\n",
		strings.Repeat("[", 600), "a = "+strings.Repeat("[", 600))
}

func FuzzImportYAML(f *testing.F) {
	fuzzImport(f, []string{"goose", "continue"},
		"extensions:\n  a: {type: stdio, cmd: x, args: [y], envs: {A: b}, env_keys: [T]}\n",
		"mcpServers:\n  - name: a\n    command: x\n", "a: &a [*a, *a]", "- - - -", fmt.Sprint(strings.Repeat("- ", 600)))
}
