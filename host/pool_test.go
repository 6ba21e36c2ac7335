package host

import (
	"testing"
)

// Equal lists become one; a list that is another stays itself.
func TestPoolSharesEqualLists(t *testing.T) {
	p, c := newPool(), &catalog{}
	list := func(names ...string) [][]byte {
		var out [][]byte
		for _, n := range names {
			out = append(out, []byte(n))
		}
		return out
	}
	first := p.share(c, "tools/list", list("a", "b"))
	if again := p.share(c, "tools/list", list("a", "b")); &again[0] != &first[0] {
		t.Error("an equal list is kept twice")
	}
	if other := p.share(c, "prompts/list", list("a", "b")); &other[0] == &first[0] {
		t.Error("lists of two kinds are one")
	}
	if changed := p.share(c, "tools/list", list("a", "c")); string(changed[1]) != "c" {
		t.Errorf("got %s", changed)
	}
	if none := p.share(c, "tools/list", [][]byte{}); none == nil {
		t.Error("a list that is empty became one that is not known")
	}
}
