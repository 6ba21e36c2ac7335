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
