package lists

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Equal lists become one; a list that is another stays itself.
func TestPoolSharesEqualLists(t *testing.T) {
	p, c := New[int](), 1
	list := func(names ...string) [][]byte {
		var out [][]byte
		for _, n := range names {
			out = append(out, []byte(n))
		}
		return out
	}
	first := p.Share(c, "tools/list", list("a", "b"))
	if again := p.Share(c, "tools/list", list("a", "b")); &again[0] != &first[0] {
		t.Error("an equal list is kept twice")
	}
	if other := p.Share(c, "prompts/list", list("a", "b")); &other[0] == &first[0] {
		t.Error("lists of two kinds are one")
	}
	if changed := p.Share(c, "tools/list", list("a", "c")); string(changed[1]) != "c" {
		t.Errorf("got %s", changed)
	}
	if none := p.Share(c, "tools/list", [][]byte{}); none == nil {
		t.Error("a list that is empty became one that is not known")
	}
}
