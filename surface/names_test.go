package surface

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	tools := []string{"create_issue", "list_issues", "search_issues", "get_file", "get_files", "x"}
	for name, want := range map[string]string{
		"create_isue": "create_issue", "file": "get_file get_files", "Get_File": "get_file get_files", "zzz": "", "issues": "list_issues search_issues", "": "",
	} {
		if got := strings.Join(nearest(name, tools), " "); got != want {
			t.Errorf("nearest %q: %q, want %q", name, got, want)
		}
	}
}
