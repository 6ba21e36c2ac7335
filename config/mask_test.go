package config

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config/template"
)

// canary is in every literal credential below; it must never be printed.
const canary = "CANARY1x9Zq7Lm3Tn8Vb2"

func TestMaskedCanary(t *testing.T) {
	s := Server{
		Name: "s", Command: "sh",
		Args: []string{
			"--token", canary, "--api-key=" + canary, "-e", "GITHUB_TOKEN=" + canary, "--header", "Authorization: Bearer " + canary,
			"-H", "X-Api-Key:" + canary, "--headers", "X-Auth-Token", canary, "postgres://u:" + canary + "@h/db",
			"https://x.example/?api_key=" + canary + "&b=c", `{"client_id":"id","client_secret":"` + canary + `"}`,
			"-c", "curl -H 'Authorization: Bearer " + canary + "' https://x.example", "ghp_" + canary, "TOKEN=" + canary + " run",
			"--password", "${PW:-" + canary + "}", "Authorization:" + canary, canary, "sh -c 'x --secret " + canary + "'",
		},
		Env: map[string]string{
			"API_TOKEN": canary, "PASSWORD": "pre" + canary, "DATABASE_URL": "postgres://u:" + canary + "@h/db", "PLAIN": "Bearer " + canary,
			"X": canary, "GITHUB_PAT": canary, "DEFAULTED": "${A:-" + canary + "}", "OPENAI_KEY": canary, "OPTS": "--token " + canary,
			"RUN": "${cmd:curl -H 'Authorization: Bearer " + canary + "'}", "AUTH": canary, "sessionKey": canary,
		},
		Cwd: "/srv", URL: "https://u:" + canary + "@x.example/s/" + canary + "/mcp?token=" + canary + "#k=" + canary,
		Headers:     map[string]string{"Authorization": "Bearer " + canary, "X-Api-Key": canary, "Cookie": "a=" + canary, "X-Other": canary},
		HeadersFrom: `{"Authorization": "Bearer ` + canary + `"}`, Card: "https://x.example/card?key=" + canary,
		OAuth: &OAuth{
			ClientID: "id", ClientSecret: canary, PrivateKey: "-----BEGIN " + canary, Assertion: canary,
			AuthorizeParams: map[string]string{"login_token": canary}, TokenEndpoint: "https://x.example/t?secret=" + canary,
			IDP: &IDP{ClientSecret: canary, IDToken: canary},
		},
		Foreign: &Foreign{Client: "x", Keys: map[string]any{"auth": map[string]any{"CLIENT_SECRET": canary}, "list": []any{"ghp_" + canary}}},
	}
	m := s.Masked()
	if got := fmt.Sprintf("%+v %+v %+v %+v", m, m.OAuth, m.OAuth.IDP, m.Foreign); strings.Contains(got, "CANARY") {
		for _, part := range strings.Split(got, " ") {
			if strings.Contains(part, "CANARY") {
				t.Errorf("shows %s", part)
			}
		}
	}
	if s.Env["API_TOKEN"] != canary || s.Args[1] != canary || s.OAuth.ClientSecret != canary {
		t.Error("Masked changed its receiver")
	}
}

func TestMaskingIsReadable(t *testing.T) {
	tests := []struct{ key, in, want string }{
		{"Authorization", "Bearer abc", "Bearer ****"},
		{"Authorization", "Bearer ${env:TOKEN}", "Bearer ${env:TOKEN}"},
		{"Authorization", "${secret:T}", "${secret:T}"},
		{"Authorization", "abc${env:T}", "****${env:T}"},
		{"TOKEN", "${T:-abc}", "${T:-****}"},
		{"TOKEN", "${T:-${U}}", "${T:-${U}}"},
		{"TOKEN", "$${T}", "****"},
		{"TOKEN", "", ""},
		{"TOKEN_FILE", "/run/token", "/run/token"},
		{"TOKEN_ENDPOINT", "https://x.example/token", "https://x.example/token"},
		{"MAX_TOKENS", "4096", "4096"},
		{"NODE_ENV", "production", "production"},
		{"PATH", "/usr/local/bin:/usr/bin", "/usr/local/bin:/usr/bin"},
		{"DEBUG", "true", "true"},
		{"HOME", "/home/someone-with-a-long-name", "/home/someone-with-a-long-name"},
		{"PKG", "@modelcontextprotocol/server-filesystem@2025.8.21", "@modelcontextprotocol/server-filesystem@2025.8.21"},
		{"URL", "https://x.example/mcp?team=core", "https://x.example/mcp?team=core"},
		{"URL", "https://x.example/mcp?token=${env:T}", "https://x.example/mcp?token=${env:T}"},
		{"URL", "https://u:${env:P}@x.example", "https://u:${env:P}@x.example"},
		{"URL", "https://u:p@x.example", "https://u:****@x.example"},
		{"URL", "https://tok@x.example/a", "https://****@x.example/a"},
		{"MODEL", "claude-3-5-sonnet-20241022", "claude-3-5-sonnet-20241022"},
		{"CMD", "${cmd:op read op://vault/item}", "${cmd:op read op://vault/item}"},
	}
	for _, tt := range tests {
		if got := template.MaskValue(tt.key, tt.in); got != tt.want {
			t.Errorf("%s=%s: %q, want %q", tt.key, tt.in, got, tt.want)
		}
	}
	args := []string{"-y", "@x/server@1.2.3", "--port", "8080", "--token", "${env:T}", "--root", "/srv/data", "--header", "Accept: text/plain", "--token", "x"}
	want := append(append([]string{}, args[:len(args)-1]...), template.Mask)
	if diff := cmp.Diff(want, template.MaskArgs(args)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMoveSecrets(t *testing.T) {
	s := Server{
		Name: "git hub", Transport: TransportStdio, Command: "npx",
		Args:    []string{"--token", canary, "--api-key=" + canary + "2", "--url", "https://u:" + canary + "@h/?api_key=" + canary, "a$", "plain"},
		Env:     map[string]string{"GITHUB_TOKEN": canary, "KEPT": "${env:KEPT}", "MIXED_TOKEN": "x$${env:A}" + canary, "PLAIN": "$${literal}"},
		Headers: map[string]string{"Authorization": "Bearer " + canary},
		OAuth:   &OAuth{ClientID: "id", ClientSecret: canary},
	}
	out, moved, clean := s.MoveSecrets()
	if !clean {
		t.Error("not clean")
	}
	if strings.Contains(fmt.Sprintf("%+v %+v %#v", out, out.OAuth, moved), "CANARY") {
		t.Errorf("a credential is left in %+v", out)
	}
	if got := out.Headers["Authorization"]; got != "Bearer ${secret:git-hub/Authorization}" {
		t.Errorf("Authorization = %q", got)
	}
	// With the moved secrets stored, it resolves to what it was.
	store := map[string]string{}
	for _, m := range moved {
		store[m.Name] = m.Reveal()
	}
	look := Lookup{
		Env:    func(n string) (string, bool) { return "e", true },
		Secret: func(_ context.Context, n string) (string, bool, error) { v, ok := store[n]; return v, ok, nil },
	}
	want, err := s.Resolve(t.Context(), look)
	if err != nil {
		t.Fatal(err)
	}
	got, err := out.Resolve(t.Context(), look)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	s = Server{Name: "s", Env: map[string]string{"A": "${cmd:curl -H 'Authorization: Bearer " + canary + "'}"}}
	if _, _, clean := s.MoveSecrets(); clean {
		t.Error("a credential inside a command was passed over")
	}
}
