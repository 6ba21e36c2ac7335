package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config/jsonc"
)

// The rules of a user file that exists and cannot be used are unknown: with --config the
// calls are blocked, as they are without it.
func TestUnusableUserFileBlocksCalls(t *testing.T) {
	const rule = `"policy": {"deny": ["github/delete_*"]}`
	for name, text := range map[string]string{
		"settings are not an object": `{"usher": 5}`,
		"settings are a list":        `{"usher": [{` + rule + `}]}`,
		"settings twice":             `{"usher": {` + rule + `}, "usher": {}}`,
		"policy is a list":           `{"usher": {"policy": [{"deny": ["github/delete_*"]}]}}`,
		"policy twice":               `{"usher": {` + rule + `, "policy": {}}}`,
		"deny twice":                 `{"usher": {"policy": {"deny": ["github/delete_*"], "deny": []}}}`,
		"deny is an object":          `{"usher": {"policy": {"deny": {"github": "delete_*"}}}}`,
		"a rule that is a number":    `{"usher": {"policy": {"deny": ["github/delete_*", 5]}}}`,
		"a rule that is empty":       `{"usher": {"policy": {"deny": [""]}}}`,
		"too large":                  `{"usher": {` + rule + `}}` + strings.Repeat(" ", MaxFileBytes),
		"servers are a list":         `{"mcpServers": [], "usher": {` + rule + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.userFile(), text)
			flag := w.write(filepath.Join(w.home, "other.json"), `{"servers": {"github": {"command": "z"}}}`)
			c, err := Load(LoadOptions{System: w.system(), File: flag})
			if err != nil || c.Usher.Problem == nil {
				t.Errorf("calls are not blocked: %v, rules %v", err, c.Usher.Policy.Deny)
			}
		})
	}
}

// A user cannot lose the rules of a file by making it unreadable. A file that another
// user keeps private has none for this one.
func TestUnreadableUserFile(t *testing.T) {
	self, dir := os.Geteuid(), t.TempDir()
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	_, owners := ownerOf(info)
	refused := &jsonc.Error{File: file, Err: &fs.PathError{Op: "open", Path: file, Err: fs.ErrPermission}}
	for name, tt := range map[string]struct {
		path string
		err  error
		self int
		want bool
	}{
		"own":                         {file, refused, self, false},
		"in an own private directory": {filepath.Join(dir, "usher", "mcp.json"), refused, self, false},
		"another user's":              {file, refused, self + 1, owners},
		"in another user's directory": {filepath.Join(dir, "usher", "mcp.json"), refused, self + 1, owners},
		"does not exist":              {file, fs.ErrNotExist, self, true},
		"another user's, not a file":  {file, errors.New("is not a regular file"), self + 1, false},
	} {
		if got := withoutRules(tt.path, tt.err, tt.self); got != tt.want {
			t.Errorf("%s: without rules %v, want %v", name, got, tt.want)
		}
	}
}
