package suggest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/test/need"
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

func TestSimilar(t *testing.T) {
	tools := []string{"create_issue", "list_issues", "search_issues", "get_file", "get_files", "x"}
	for name, want := range map[string]string{
		"create_isue": "create_issue", "file": "get_file get_files", "Get_File": "get_file get_files", "zzz": "", "issues": "list_issues search_issues", "": "",
	} {
		if got := strings.Join(Similar(name, tools), " "); got != want {
			t.Errorf("similar to %q: %q, want %q", name, got, want)
		}
	}
}

// TestSuggestionsAreLimited: a wrong name costs about the same, however many tools
// there are and however long their names.
func TestSuggestionsAreLimited(t *testing.T) {
	for _, length := range []int{50, 100, 1000} {
		var names []string
		for i := range 50_000 {
			names = append(names, fmt.Sprintf("%05d%s", i, strings.Repeat("n", length-5)))
		}
		steps := suggestionSteps(strings.Repeat("x", length), names)
		if most := limit.SuggestionSteps + 100*100; steps > most {
			t.Errorf("%d steps for names of %d, want at most %d", steps, length, most)
		}
		need.Linear(t, 1000, func(n int) func() {
			return func() {
				Similar(strings.Repeat("x", 10*n), names[:1000])
				Nearest(strings.Repeat("x", 10*n), names[:1000])
			}
		})
	}
	if got := Similar("tool7x", []string{"other", "tool7"}); len(got) != 1 || got[0] != "tool7" {
		t.Errorf("got %q", got)
	}
}

func suggestionSteps(name string, candidates []string) int {
	r := similar(name)
	r.best(candidates)
	return limit.SuggestionSteps - r.steps
}
