package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiff(t *testing.T) {
	a := loadText(t, `{"mcpServers": {"same": {"command": "x"}, "gone": {"command": "x"}, "new-args": {"command": "x"}}}`)
	b := loadText(t, `{
		"mcpServers": {"added": {"command": "x"},
		"same": {"command": "x"}, "new-args": {"command": "x", "args": ["y"]}}, "usher": {"maxConnected": 2}}`)
	for i := range b.Servers {
		b.Servers[i].Origin.File = a.Servers[0].Origin.File
	}
	want := Change{Added: []string{"added"}, Removed: []string{"gone"}, Changed: []string{"new-args"}, Settings: true}
	if diff := cmp.Diff(want, b.Diff(a)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := a.Nearest("smae"); len(got) != 1 || got[0] != "same" {
		t.Errorf("nearest = %v", got)
	}
}
