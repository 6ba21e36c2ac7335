//go:build unix

package keys

import (
	"io/fs"
	"testing"
)

// A key that the group can read is used only where root has put it for a process of
// somebody else, as Kubernetes does.
func TestRootsSecret(t *testing.T) {
	for _, tt := range []struct {
		name  string
		mode  fs.FileMode
		owner uint32
		user  int
		want  bool
	}{
		{"mounted by Kubernetes", 0o440, 0, 65532, true},
		{"writable by root", 0o640, 0, 65532, true},
		{"readable by all", 0o444, 0, 65532, false},
		{"writable by the group", 0o460, 0, 65532, false},
		{"one's own", 0o440, 65532, 65532, false},
		{"somebody else's", 0o440, 1000, 65532, false},
		{"root itself", 0o440, 0, 0, false},
	} {
		if got := rootsSecret(tt.mode, tt.owner, tt.user); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
