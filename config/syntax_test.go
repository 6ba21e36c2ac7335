package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config/jsonc"
	"github.com/usher-mcp/usher/internal/visible"
)

// mistakes are files with one mistake each; the golden file holds what a
// person gets to see.
var mistakes = []struct{ name, text string }{
	{"missing comma in array", "{\n  \"mcpServers\": {\n    \"a\": {\n      \"args\": [\"-y\" \"server\"]\n    }\n  }\n}"},
	{"missing comma in object", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}\n    \"b\": {}\n  }\n}"},
	{"missing colon", "{\"mcpServers\" {}}"},
	{"missing value", "{\"mcpServers\": }"},
	{"missing value before comma", "{\"a\": [1, , 2]}"},
	{"single quotes", "{'mcpServers': {}}"},
	{"single quoted value", "{\"a\": 'b'}"},
	{"bare key", "{mcpServers: {}}"},
	{"bare word", "{\"a\": yes}"},
	{"python", "{\"a\": True}"},
	{"unclosed object", "{\n  \"mcpServers\": {\n    \"a\": {}\n\n"},
	{"unclosed array", "{\"a\": [1, 2"},
	{"unclosed string", "{\"a\": \"b\n}"},
	{"unclosed string at the end", "{\"a\": \"b"},
	{"unclosed comment", "{ /* never\n}"},
	{"lone slash", "{ / }"},
	{"bad escape", `{"command": "C:\tools\x"}`},
	{"control character", "{\"a\": \"b\x01c\"}"},
	{"not UTF-8", "{\"a\": \"b\xffc\"}"},
	{"two values", "{} {}"},
	{"empty", "  \n"},
	{"array", "[]"},
	{"servers are a list", "{\"mcpServers\": []}"},
	{"wide characters before", "{\"é漢\": \"ü\" 1}"},
	{"tabs and escapes", "{\t\"a\x1b[31m\": 1 2}"},
	{"long line", "{\"a\": \"" + strings.Repeat("x ", 200) + "\" 1, \"b\": \"" + strings.Repeat("y ", 200) + "\"}"},
	{"deep", strings.Repeat("[", 300)},
	{"twice", "{\"mcpServers\": {},\n \"mcpServers\": {}}"},
	{"secret beside", "{\"env\": {\"API_TOKEN\": \"hunter2hunter2\" \"X\": 1}}"},
	{"secret by looks", "{\"x\": [\"ghp_0123456789abcdefghijABCDEFGHIJ012345\" 1]}"},
	{"secret after a flag", "{\"args\": [\"--api-key\", \"hunter2\" 1]}"},
	{"secret without quotes", "{\"password\": hunter2, \"a\": 1}"},
	{"secret in header", "{\"args\": [\"--header\", \"Authorization: Bearer abc\" 1]}"},
}

func TestMistakes(t *testing.T) {
	var b strings.Builder
	for _, m := range mistakes {
		c := loadText(t, m.text)
		e, ok := errors.AsType[*jsonc.Error](c.Files[0].Err)
		if !ok {
			t.Errorf("%s: error = %v", m.name, c.Files[0].Err)
			continue
		}
		e.File = "mcp.json"
		fmt.Fprintf(&b, "== %s\n%s\n", m.name, e.Detail())
		for _, secret := range []string{"hunter2", "ghp_", "abc"} {
			if strings.Contains(e.Detail(), secret) {
				t.Errorf("%s: %q shows in\n%s", m.name, secret, e.Detail())
			}
		}
		if strings.ContainsAny(e.Detail(), "\x1b\x01") {
			t.Errorf("%s: control characters in %q", m.name, e.Detail())
		}
	}
	golden(t, "mistakes.golden", b.String())
}

func TestServerMistakes(t *testing.T) {
	var b strings.Builder
	c := loadText(t, `{
  "mcpServers": {
    "a": {"command": "x", "args": "-y"},
    "b": {"command": "x", "timeouts": {"call": "soon", "list": -1}},
    "c": {"command": "x", "env": {"K": "${secert:N}"}},
    "d": {"command": "x", "env": {"K": "${N"}},
    "e": {"url": "ftp://x.example"},
    "f": {"url": "https://user:hunter2@"},
    "g": {"command": "x", "pins": "blok"},
    "h": {},
    "i": {"command": "x", "lazy": "yes"},
    "j": {"command": "x", "maxMessageBytes": 1e3},
    "k": {"url": "https://x.example", "oauth": {"grant": "password", "discovery": "on"}},
    "l": {"command": "x", "tools": {"deny": ["[a"]}},
    "m": {"type": "websocket", "url": "https://x.example"},
    "n": {"command": "x", "command": "y"},
    "o\u202e": {"command": "x"}
  }
}`)
	for _, s := range c.Servers {
		fmt.Fprintf(&b, "== %s\n", visible.Text(s.Name))
		for _, err := range flatten(s.Problem) {
			e, ok := errors.AsType[*jsonc.Error](err)
			if !ok {
				t.Fatalf("%s: %v", s.Name, err)
			}
			e.File = "mcp.json"
			b.WriteString(e.Detail() + "\n")
		}
	}
	for _, w := range c.Warnings {
		w.File = "mcp.json"
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	if strings.Contains(b.String(), "hunter2") {
		t.Error("a password shows")
	}
	golden(t, "servers.golden", b.String())
}

func flatten(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range many.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

func TestAcceptedSyntax(t *testing.T) {
	for name, text := range map[string]string{
		"comment at the end":    "{} // end",
		"comments":              "/* a */ { // b\n \"mcpServers\": /* c */ {}, // d\n }",
		"trailing commas":       `{"mcpServers": {"a": {"command": "x", "args": ["y",],},},}`,
		"byte order mark":       "\xef\xbb\xbf{}",
		"windows line ends":     "{\r\n\"mcpServers\": {}\r\n}\r\n",
		"null is not written":   `{"mcpServers": null, "usher": null}`,
		"numbers":               `{"x-a": [0, -1, 1.5, 1e9, 12345678901234567890]}`,
		"escaped slash in text": `{"x-a": "a\/b // no comment /* neither */"}`,
	} {
		if c := loadText(t, text); c.Files[0].Err != nil || c.Usher.Problem != nil {
			t.Errorf("%s: %v", name, c.Files[0].Err)
		}
	}
}

func FuzzJSONC(f *testing.F) {
	for _, m := range mistakes {
		f.Add([]byte(m.text))
	}
	f.Add([]byte(`{"mcpServers": {"a": {"command": "${A:-${B}}", "timeouts": {"call": 1}}}} // x`))
	f.Add([]byte(`{"usher": {"policy": {"deny": ["a/*"]}}, "inputs": [{"id": "x"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		src := &jsonc.Source{File: "f", Text: text}
		if _, err := jsonc.Parse(src); err != nil {
			e, ok := errors.AsType[*jsonc.Error](err)
			if !ok || e.Err != nil {
				t.Fatalf("hujson refuses what the checker takes: %v", err)
			}
			if strings.ContainsAny(e.Detail(), "\x1b\x00\r") {
				t.Fatalf("control characters in %q", e.Detail())
			}
			return
		}
		l := &loader{cfg: &Config{Usher: DefaultSettings()}, servers: map[string]Server{}}
		if _, err := l.decode(src, LayerProject); err != nil {
			return
		}
		for _, s := range l.servers {
			_, _, _ = s.Masked(), s.Digest(), s.Describe()
			if s.Problem != nil {
				continue
			}
			if raw, err := s.Entry(); err != nil {
				t.Fatalf("entry %s: %v", raw, err)
			}
		}
	})
}
