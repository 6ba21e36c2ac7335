package wire

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	all := Versions()
	if !slices.IsSortedFunc(all, func(a, b string) int { return strings.Compare(b, a) }) || all[0] != Newest || all[1] != NewestLegacy {
		t.Errorf("Versions() = %q, want newest first", all)
	}
	for _, v := range all {
		if !Known(v) || Modern(v) != (v == Newest) {
			t.Errorf("%s: known %v, modern %v", v, Known(v), Modern(v))
		}
	}
	for _, v := range []string{"", "2026-07-27", "2026-07-29", "DRAFT-2026-v1"} {
		if Known(v) {
			t.Errorf("%q is known", v)
		}
	}
	if Modern("") || !Modern("2027-01-01") {
		t.Error("no version is modern, or a later one is not")
	}
	all[0] = "changed"
	if Versions()[0] != Newest {
		t.Error("a caller can change the versions")
	}
}

// TestHeaderNames: http.Header is a map, so names must have the form its methods use.
func TestHeaderNames(t *testing.T) {
	for _, h := range []string{HeaderVersion, HeaderSession, HeaderMethod, HeaderName, HeaderParamPrefix + "X", HeaderLastEvent} {
		if http.CanonicalHeaderKey(h) != h {
			t.Errorf("%s is not canonical", h)
		}
	}
}
