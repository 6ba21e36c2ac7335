package cli

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/fake"
)

// canary finds secrets: tokens and codes of the fake authorization server, and those
// that the configuration of the test holds.
var canary = regexp.MustCompile(`\b(at|rt|rat|code|secret)-[A-Z2-7]{20,}|canary-[a-z0-9-]+`)

// TestSecretsStayHome logs in, calls, looks at everything and sweeps what was
// written: no token, code or configured secret may stand in any output, nor in any
// file but the configuration it came from.
func TestSecretsStayHome(t *testing.T) {
	as := fake.NewAuth(nil)
	url := protected(t, as)
	run := loginHome(t, map[string]string{"notes": url})
	var all bytes.Buffer
	do := func(want int, args ...string) {
		t.Helper()
		if got := run(strings.NewReader(""), &all, &all, args...); got != want {
			t.Errorf("usher %s: exit code %d, want %d: %s", strings.Join(args, " "), got, want, &all)
		}
	}
	do(exitOK, "add", "child", "--env", "API_TOKEN=canary-env-1234567890", "--disabled", "--", "no-such-program", "--token", "canary-arg-1234567890")
	do(exitOK, "add", "web", "http://127.0.0.1:9/mcp", "--header", "Authorization: Bearer canary-header-123456", "--disabled")
	loginBy(t, as, run, &all)
	for _, args := range [][]string{
		{"call", "notes", "add", "a=1", "b=2"},
		{"call", "notes", "meta", "--json"},
		{"tools", "notes"},
		{"status"},
		{"status", "--json"},
		{"doctor", "notes"},
		{"list"},
		{"list", "--json"},
		{"list", "--long"},
		{"auth", "list", "--json"},
		{"auth", "show", "notes"},
		{"auth", "clients", "--json"},
		{"auth", "explain", "notes", "--json"},
		{"export", "claude"},
		{"logs", "notes"},
		{"-v", "call", "notes", "add", "a=1", "b=2"},
	} {
		_ = run(strings.NewReader(""), &all, &all, args...) // some report problems; what counts is their words
	}
	as.RevokeAll()
	do(exitWaiting, "call", "notes", "add", "a=1", "b=2")
	do(exitOK, "logout", "notes")
	for _, at := range canary.FindAllIndex(all.Bytes(), 3) {
		t.Errorf("a secret was printed: …%s…", all.Bytes()[max(0, at[0]-120):at[1]])
	}
}

// TestSecretsAreSealed wants no token in any file after a login.
func TestSecretsAreSealed(t *testing.T) {
	as := fake.NewAuth(nil)
	home := t.TempDir()
	run := loginAt(t, home, map[string]string{"notes": protected(t, as)})
	var all bytes.Buffer
	loginBy(t, as, run, &all)
	if got := run(nil, &all, &all, "call", "notes", "add", "a=1", "b=2"); got != exitOK {
		t.Fatalf("exit code %d: %s", got, &all)
	}
	files := 0
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if found := canary.Find(text); found != nil {
			t.Errorf("%s holds %q", filepath.Base(path), found)
		}
		return err
	})
	if err != nil || files < 2 {
		t.Fatalf("%d files, %v", files, err)
	}
}
