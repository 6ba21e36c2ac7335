package search

import (
	"fmt"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/limit"
)

// TestQueriesAreLimited: words beyond the limit are not looked up.
func TestQueriesAreLimited(t *testing.T) {
	var words []string
	for i := range limit.QueryWords {
		words = append(words, fmt.Sprint("w", i))
	}
	x := NewIndex([]Document{{Server: "s", Tool: "needle"}})
	if hits := x.Search(strings.Join(words[1:], " ")+" needle", 1); len(hits) != 1 {
		t.Error("a word within the limit is not looked up")
	}
	if hits := x.Search(strings.Join(words, " ")+" needle", 1); len(hits) != 0 {
		t.Error("a word beyond the limit is looked up")
	}
}
