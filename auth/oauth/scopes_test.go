package oauth

import (
	"fmt"
	"strings"
	"testing"
)

// A token response with too many scopes counts as one that names none.
func TestTooManyScopesInAnswer(t *testing.T) {
	many := make([]string, 20_000)
	for i := range many {
		many[i] = fmt.Sprint("s", i)
	}
	if got := readScopes([]byte(`"` + strings.Join(many, " ") + `"`)); got != nil {
		t.Errorf("%d scopes of an answer are kept", len(got))
	}
	if got := UnionScopes(many, many); len(got) != len(many) || len(MissingScopes(got, many)) != 0 {
		t.Errorf("%d scopes", len(got))
	}
}
