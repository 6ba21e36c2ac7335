package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/visible"
)

func projectServer() Server {
	lazy := true
	return Server{
		Name: "s", Transport: TransportStdio, Command: "npx", Args: []string{"-y", "pkg", ""},
		Env: map[string]string{"A": "1", "B": "${env:B}"}, Cwd: "sub", Lazy: &lazy, Pins: PinsBlock,
		Headers: map[string]string{"X": "1"}, URL: "https://x.example/mcp",
		Supervision: Supervision{Retry: RetrySafe}, MaxMessageBytes: 1 << 20,
		Tools: ToolRules{Allow: []string{"a"}, Deny: []string{"b"}, Rename: map[string]string{"c": "d"}},
		OAuth: &OAuth{
			ClientID: "id", ClientSecret: "s", Scopes: []string{"a", "b"}, AuthorizeParams: map[string]string{"p": "q"},
			IDP: &IDP{Issuer: "https://i"}, Discovery: Discovery{Mode: "auto", Allow: []string{"h"}},
		},
		Origin: Origin{File: "/r/.mcp.json", Line: 3, Layer: LayerProject},
	}
}

// mutations change one thing each that a person has to see again.
var mutations = map[string]func(*Server){
	"command":              func(s *Server) { s.Command = "npx2" },
	"command case":         func(s *Server) { s.Command = "NPX" },
	"command homoglyph":    func(s *Server) { s.Command = "nрx" },
	"command blank":        func(s *Server) { s.Command = "npx " },
	"command path":         func(s *Server) { s.Command = "./npx" },
	"command zero width":   func(s *Server) { s.Command = "np\u200bx" },
	"args appended":        func(s *Server) { s.Args = append(s.Args, "-c") },
	"args dropped":         func(s *Server) { s.Args = s.Args[:2] },
	"args empty one moved": func(s *Server) { s.Args = []string{"", "-y", "pkg"} },
	"args order":           func(s *Server) { s.Args = []string{"pkg", "-y", ""} },
	"args joined":          func(s *Server) { s.Args = []string{"-y pkg", ""} },
	"args split":           func(s *Server) { s.Args = []string{"-", "y", "pkg", ""} },
	"args version":         func(s *Server) { s.Args[1] = "pkg@2" },
	"args all gone":        func(s *Server) { s.Args = nil },
	"args to env":          func(s *Server) { s.Args = s.Args[:2]; s.Env[""] = "" },
	"env value":            func(s *Server) { s.Env["A"] = "2" },
	"env name":             func(s *Server) { delete(s.Env, "A"); s.Env["a"] = "1" },
	"env added":            func(s *Server) { s.Env["LD_PRELOAD"] = "x.so" },
	"env removed":          func(s *Server) { delete(s.Env, "A") },
	"env empty added":      func(s *Server) { s.Env["C"] = "" },
	"env placeholder":      func(s *Server) { s.Env["B"] = "${env:C}" },
	"env to command":       func(s *Server) { s.Env["B"] = "${cmd:B}" },
	"env to secret":        func(s *Server) { s.Env["B"] = "${secret:B}" },
	"env default":          func(s *Server) { s.Env["B"] = "${env:B:-x}" },
	"env swapped":          func(s *Server) { s.Env["A"], s.Env["B"] = s.Env["B"], s.Env["A"] },
	"cwd":                  func(s *Server) { s.Cwd = "../sub" },
	"cwd gone":             func(s *Server) { s.Cwd = "" },
	"url":                  func(s *Server) { s.URL = "https://y.example/mcp" },
	"url scheme":           func(s *Server) { s.URL = "http://x.example/mcp" },
	"url slash":            func(s *Server) { s.URL += "/" },
	"url query":            func(s *Server) { s.URL += "?a=b" },
	"header value":         func(s *Server) { s.Headers["X"] = "2" },
	"header name":          func(s *Server) { delete(s.Headers, "X"); s.Headers["x"] = "1" },
	"header added":         func(s *Server) { s.Headers["Y"] = "" },
	"headers from":         func(s *Server) { s.HeadersFrom = "${cmd:x}" },
	"transport":            func(s *Server) { s.Transport = TransportSSE },
	"file":                 func(s *Server) { s.Origin.File = "/other/.mcp.json" },
	"name":                 func(s *Server) { s.Name = "t" },
	"card":                 func(s *Server) { s.Card = "/etc/passwd" },
	"trust":                func(s *Server) { s.Trust = true },
	"pins":                 func(s *Server) { s.Pins = PinsOff },
	"retry":                func(s *Server) { s.Supervision.Retry = RetryAlways },
	"size":                 func(s *Server) { s.MaxMessageBytes *= 2 },
	"singleton":            func(s *Server) { s.Singleton = true },
	"tools allow":          func(s *Server) { s.Tools.Allow = []string{"*"} },
	"tools deny":           func(s *Server) { s.Tools.Deny = nil },
	"tools deny to allow":  func(s *Server) { s.Tools.Allow = []string{"a", "b"}; s.Tools.Deny = nil },
	"tools rename":         func(s *Server) { s.Tools.Rename["c"] = "e" },
	"oauth gone":           func(s *Server) { s.OAuth = nil },
	"oauth client":         func(s *Server) { s.OAuth.ClientID = "other" },
	"oauth secret":         func(s *Server) { s.OAuth.ClientSecret = "" },
	"oauth token endpoint": func(s *Server) { s.OAuth.TokenEndpoint = "https://evil" },
	"oauth scopes":         func(s *Server) { s.OAuth.Scopes = []string{"a b"} },
	"oauth dpop":           func(s *Server) { s.OAuth.DPoP = true },
	"oauth grant":          func(s *Server) { s.OAuth.Grant = GrantClientCredentials },
	"oauth discovery":      func(s *Server) { s.OAuth.Discovery.Mode = "off" },
	"oauth hosts":          func(s *Server) { s.OAuth.Discovery.Allow = append(s.OAuth.Discovery.Allow, "10.0.0.1") },
	"oauth params":         func(s *Server) { s.OAuth.AuthorizeParams["p"] = "r" },
	"oauth idp":            func(s *Server) { s.OAuth.IDP = nil },
	"oauth idp issuer":     func(s *Server) { s.OAuth.IDP.Issuer = "https://j" },
}

func TestDigestCoversMutations(t *testing.T) {
	seen := map[string]string{projectServer().Digest(): "unchanged"}
	for name, mutate := range mutations {
		s := projectServer()
		mutate(&s)
		if !s.NeedsApproval() {
			t.Errorf("%s: not held back", name)
		}
		if other, dup := seen[s.Digest()]; dup {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[s.Digest()] = name
	}
	if len(mutations) < 40 {
		t.Errorf("only %d mutations", len(mutations))
	}
}

// Every string there is, or will be, changes the digest unless it is listed.
func TestDigestCoversFields(t *testing.T) {
	cosmetic := map[string]bool{
		"Title": true, "Tags": true, "Origin.Layer": true, "Origin.Shadows": true, "Foreign.Client": true,
	}
	base := Server{OAuth: &OAuth{IDP: &IDP{}}, Foreign: &Foreign{}}
	fill(reflect.ValueOf(&base).Elem(), "", func(string) string { return "x" })
	var paths []string
	fill(reflect.ValueOf(&base).Elem(), "", nil, func(path, _ string) { paths = append(paths, path) })
	for _, changed := range paths {
		s := base.clone()
		fill(reflect.ValueOf(&s).Elem(), "", func(path string) string {
			if path == changed {
				return "y"
			}
			return "x"
		})
		if same := s.Digest() == base.Digest(); same != cosmetic[changed] {
			t.Errorf("%s: digest stays the same: %v", changed, same)
		}
	}
}

func TestDigestIgnoresPlacesAndWaits(t *testing.T) {
	a, b := projectServer(), projectServer()
	b.Origin.Line, b.Timeouts.Call, b.KeepAlive, b.Tags, b.Lazy, b.Disabled = 99, 5, 7, []string{"x"}, nil, true
	if a.Digest() != b.Digest() {
		t.Error("moving or tuning a server takes its approval away")
	}
	if a.Digest() == a.DigestWith("/usr/bin/npx") || a.DigestWith("/a") == a.DigestWith("/b") {
		t.Error("facts are not mixed in")
	}
}

func TestApprovalReasons(t *testing.T) {
	const notPublic = "is not a plain https address on the public internet"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"plain address", `{"url": "https://x.example"}`, nil},
		{"command", `{"command": "x"}`, []string{"starts a program on this machine"}},
		{"plain address with path, query and default port", `{"url": "https://x.example:443/mcp?a=b"}`, nil},
		{"nothing set about logins", `{"url": "https://x.example", "oauth": {}}`, nil},
		{"not encrypted", `{"url": "http://x.example"}`, []string{notPublic}},
		{"this machine", `{"url": "http://127.0.0.1:2375/containers/create"}`, []string{notPublic}},
		{"this machine by name", `{"url": "https://localhost/"}`, []string{notPublic}},
		{"local network", `{"url": "https://printer.local/"}`, []string{notPublic}},
		{"inside of a cloud", `{"url": "https://metadata.google.internal/"}`, []string{notPublic}},
		{"name without dot", `{"url": "https://intranet/"}`, []string{notPublic}},
		{"public address as a number", `{"url": "https://8.8.8.8/"}`, []string{notPublic}},
		{"address of version 6", `{"url": "https://[fd00::1]/"}`, []string{notPublic}},
		{"short address", `{"url": "https://127.1/"}`, []string{notPublic}},
		{"another port", `{"url": "https://x.example:8443/"}`, []string{notPublic}},
		{"credential in the address", `{"url": "https://user:pass@x.example/"}`, []string{notPublic}},
		{"headers", `{"url": "https://x.example", "headers": {"X-Admin": "yes"}}`, []string{"sends headers of its choice"}},
		{"login settings", `{"url": "https://x.example", "oauth": {"tokenEndpoint": "https://y.example/token"}}`, []string{"sets how to log in"}},
		{"login without a person", `{"url": "https://x.example", "oauth": {"grant": "client_credentials", "clientId": "a", "clientSecret": "b"}}`, []string{"sets how to log in"}},
		{"no discovery", `{"url": "https://x.example", "oauth": {"discovery": "off"}}`, []string{"sets how to log in"}},
		{"size of messages", `{"url": "https://x.example", "maxMessageBytes": 999999999}`, []string{"raises the limit on the size of a message"}},
		{"card elsewhere", `{"url": "https://x.example", "card": "http://127.0.0.1/card"}`, []string{"reads a server card"}},
		{"environment leaves", `{"url": "https://x.example", "headers": {"A": "${TOKEN}"}}`, []string{"sends headers of its choice", "reads environment variables"}},
		{"secret in address", `{"url": "https://x.example/${secret:S}"}`, []string{"reads stored secrets"}},
		{"hidden in a default", `{"url": "https://x.example/${A:-${file:/etc/passwd}}"}`, []string{"reads environment variables", "reads files"}},
		{"command for headers", `{"url": "https://x.example", "headersFrom": "${cmd:x}"}`, []string{"sends headers of its choice", "runs commands to get values"}},
		{"escaped", `{"url": "https://x.example", "headers": {"A": "$${TOKEN}"}}`, []string{"sends headers of its choice"}},
		{"safeguards", `{"url": "https://x.example", "pins": "off", "trust": true}`, []string{
			"asks that its own annotations be believed", "asks that changed tools be let through",
		}},
		{"private hosts", `{"url": "https://x.example", "oauth": {"discovery": {"allow": ["10.0.0.1"]}}}`, []string{"sets how to log in", "asks for logins to reach private addresses"}},
		{"card", `{"url": "https://x.example", "card": "../../secrets.json"}`, []string{"reads a server card"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.repo+"/.mcp.json", `{"mcpServers": {"s": `+tt.text+`}}`)
			s, _ := w.load().Server("s")
			if diff := cmp.Diff(tt.want, s.ApprovalReasons()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			s.Origin.Layer = LayerUser
			if s.NeedsApproval() {
				t.Error("a server of the user is held back")
			}
		})
	}
}

func TestDescribeHidesNothing(t *testing.T) {
	s := projectServer()
	long := strings.Repeat("0123456789abcdef", 256)
	s.Args = []string{
		long, "\x1b[2K\x1b[1A", "a\nb", "user\u202egpj.exe", "zero\u200bwidth", "back\\slash", `quo"te`, "tab\t", "nbsp\u00a0", "soft\u00adhyphen",
		"tag\U000e0041", "hangul\u3164filler", "bad\xffbyte", "\u2028", "c1\u009b31m", "ünïcode", "x\ufe0f",
	}
	s.Env["TOKEN"] = "literal-secret"
	s.Env["\x1b]52;c;AAAA\x07"] = "v"
	got := strings.Join(s.Describe(), "\n")
	for _, want := range []string{long, "literal-secret", `"\x1b[2K\x1b[1A"`, `"a\nb"`, `\u{202e}`, `\u{200b}`, `https://x.example/mcp`, "starts a program"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, r := range got {
		if r != '\n' && (!unicode.IsPrint(r) || visible.Invisible(r)) {
			t.Errorf("%U stands in the description", r)
		}
	}
	golden(t, "describe.golden", strings.ReplaceAll(got, long, fmt.Sprintf("<%d characters>", len(long)))+"\n")
}
