package config

import (
	"strings"
	"testing"
)

// TestCheckLabel: a label becomes part of a file name and of a key, on any system.
func TestCheckLabel(t *testing.T) {
	for _, ok := range []string{"work", "Work_2", "a.b", "ann-lee", "büro", "工作"} {
		if err := CheckLabel(ok); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for _, bad := range []string{
		"", ".", "..", ".hidden", "a.", "a/b", `a\b`, `..\..\x`, "c:", "a@b", "a b", "a\tb", "a\x00b", "a\u200bb", "a\u202eb",
		"a*", "a?", `a"b`, "a|b", "a<b", "%2e%2e", strings.Repeat("x", 65), "\xff",
	} {
		if CheckLabel(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// One parser reads accounts everywhere: a label with an "@", or an empty one, is refused.
func TestParseAccount(t *testing.T) {
	for _, tt := range []struct {
		text, server, label string
		ok                  bool
	}{
		{"a", "a", "", true},
		{"a@b", "a", "b", true},
		{"a@", "", "", false},
		{"a@b@c", "", "", false},
		{"a@b/c", "", "", false},
	} {
		server, label, err := ParseAccount(tt.text)
		if server != tt.server || label != tt.label || (err == nil) != tt.ok {
			t.Errorf("%s: %q, %q, %v", tt.text, server, label, err)
		}
		if err == nil && AccountName(server, label) != tt.text {
			t.Errorf("%s is %s afterwards", tt.text, AccountName(server, label))
		}
	}
}
