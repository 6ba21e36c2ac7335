package lists

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alone has each catalog belong to a principal of its own.
func alone(c int) string { return fmt.Sprint(c) }

// Equal lists become one; a list that is another stays itself.
func TestPoolSharesEqualLists(t *testing.T) {
	p, c := New(alone), 1
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

// ofSize is a list of n bytes.
func ofSize(name string, n int) [][]byte {
	return [][]byte{[]byte(name + strings.Repeat("x", n-len(name)))}
}

// A principal whose sessions list much does not cost the others their lists, also when
// two sessions share each list, and when another one has a larger list.
func TestListsOfTheLargestOwnerAreDroppedFirst(t *testing.T) {
	p := New(func(c string) string { name, _, _ := strings.Cut(c, " "); return name })
	p.Max = 1000
	const method = "tools/list"
	for i := range 50 {
		p.Share(fmt.Sprint("user", i), method, ofSize("common", 100))
	}
	p.Share("large", "prompts/list", ofSize("own", 400))
	var dropped []string
	for i := range 40 {
		for _, session := range []string{"a", "b"} {
			c := fmt.Sprint("flood ", i, session)
			p.Share(c, method, ofSize(fmt.Sprint("list", i), 240))
			dropped = append(dropped, p.Overdue(c)...)
			if n := p.Bytes(); n > p.Max {
				t.Fatalf("%d bytes are kept, want at most %d", n, p.Max)
			}
		}
	}
	if i := slices.IndexFunc(dropped, func(c string) bool { return !strings.HasPrefix(c, "flood") }); i >= 0 {
		t.Errorf("the lists of %s are dropped for the sessions of another account", dropped[i])
	}
	if len(dropped) < 70 {
		t.Errorf("%d are dropped, too few", len(dropped))
	}
}

// What is as large as the rest goes by age.
func TestOldListsAreDroppedFirst(t *testing.T) {
	p := New(alone)
	p.Max = 300
	for c := range 4 {
		p.Share(c, "tools/list", ofSize(fmt.Sprint(c), 100))
	}
	if got := p.Overdue(3); !slices.Equal(got, []int{0}) {
		t.Errorf("%v are dropped, want 0", got)
	}
}

// Many small lists that have to go for a large one are found in one pass.
func BenchmarkOverdue(b *testing.B) {
	for b.Loop() {
		p := New(alone)
		for c := range 10_000 {
			p.Share(c, "tools/list", ofSize(fmt.Sprint(c), 100))
		}
		p.Max = 0
		if n := len(p.Overdue(-1)); n != 10_000 {
			b.Fatal(n)
		}
	}
}
