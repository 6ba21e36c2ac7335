package mcp

import (
	"slices"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	all := Versions()
	if !slices.IsSortedFunc(all, func(a, b string) int { return strings.Compare(b, a) }) || all[0] != Latest || all[1] != LatestLegacy {
		t.Errorf("Versions() = %q, want newest first", all)
	}
	for _, v := range all {
		if !Known(v) || Stateless(v) != (v == Latest) {
			t.Errorf("%s: known %v, modern %v", v, Known(v), Stateless(v))
		}
	}
	for _, v := range []string{"", "2026-07-27", "2026-07-29", "DRAFT-2026-v1"} {
		if Known(v) {
			t.Errorf("%q is known", v)
		}
	}
	if Stateless("") || !Stateless("2027-01-01") {
		t.Error("no version is modern, or a later one is not")
	}
	all[0] = "changed"
	if Versions()[0] != Latest {
		t.Error("a caller can change the versions")
	}
}
