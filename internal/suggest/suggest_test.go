package suggest

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"github", "gitlab", "linear", "math"}
	for name, want := range map[string][]string{
		"githb": {"github"}, "gihtub": {"github"}, "lin": {"linear"}, "zzz": nil, strings.Repeat("a", longestSuggested+1): nil,
	} {
		if got := Nearest(name, names); !slices.Equal(got, want) {
			t.Errorf("%.20q: %q, want %q", name, got, want)
		}
	}
	if got := DidYouMean("githb", names); got != `; did you mean "github"?` {
		t.Error(got)
	}
}
