package config

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestTags(t *testing.T) {
	w := newWorld(t)
	w.write(w.userFile(), `{"mcpServers": {
		"a": {"command": "x", "tags": ["work", "slow"]},
		"b": {"command": "x", "tags": ["home"]},
		"c*": {"command": "x", "tags": ["work"]},
		"d": {"command": "x"}
	}, "usher": {"gateway": {"profiles": {"office": {"servers": ["d"], "tags": ["work", "none"]}, "void": {"tags": ["none"]}}}}}`)
	w.write(filepath.Join(w.repo, ".mcp.json"), `{"mcpServers": {"guest": {"url": "https://x.example", "tags": ["work"]}}}`)
	c := w.load()
	if got := c.Tagged("work"); !slices.Equal(got, []string{"a", "c*", "guest"}) {
		t.Errorf("work: %q", got)
	}
	if got := c.Tagged("home", "slow"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("home, slow: %q", got)
	}
	if got := c.Tags(); !slices.Equal(got, []string{"home", "slow", "work"}) {
		t.Errorf("tags: %q", got)
	}
	// A profile gets what the user tagged, not what a project's file tags itself.
	if got := c.Profile(c.Usher.Gateway.Profiles["office"]).Servers; !slices.Equal(got, []string{"d", "a"}) {
		t.Errorf("office: %q", got)
	}
	if got := c.Profile(c.Usher.Gateway.Profiles["void"]).Servers; len(got) != 0 {
		t.Errorf("void: %q", got)
	}
}
