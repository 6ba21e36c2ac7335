package pins

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/lookalike"
)

// Change is one difference between two definitions of a tool.
type Change struct {
	// Path is where it is, from the outside in: inputSchema, properties, path.
	Path []string
	// Kind is one of the Change constants.
	Kind string
	// Old and New are the raw JSON values; nil where there is none.
	Old, New []byte
}

// The kinds of changes.
const (
	ChangeAdded   = "added"
	ChangeRemoved = "removed"
	ChangeChanged = "changed"
)

// maxChanges bounds a comparison; more would not be read.
const maxChanges = 500

// Compare lists the differences between two definitions of a tool, in the order of
// their paths. Order and white space inside them make none.
func Compare(old, new []byte) []Change {
	var c comparison
	c.values(nil, normalFormOr(old), normalFormOr(new))
	return c.out
}

// normalFormOr is the normal form of a tool, or the tool itself where it has none.
func normalFormOr(tool []byte) []byte {
	if form, err := normalForm(tool); err == nil {
		return form
	}
	return tool
}

type comparison struct{ out []Change }

func (c *comparison) add(path []string, kind string, old, new []byte) {
	if len(c.out) < maxChanges {
		c.out = append(c.out, Change{Path: slices.Clone(path), Kind: kind, Old: old, New: new})
	}
}

// values compares two canonical values.
func (c *comparison) values(path []string, old, new []byte) {
	if len(c.out) >= maxChanges || bytes.Equal(old, new) {
		return
	}
	was, is := jsonx.TypeOf(old), jsonx.TypeOf(new)
	switch {
	case was == "object" && is == "object":
		c.objects(path, members(old), members(new))
	case was == "array" && is == "array" && isSet(path):
		c.sets(path, elements(old), elements(new))
	case was == "array" && is == "array":
		c.arrays(path, elements(old), elements(new))
	default:
		c.add(path, ChangeChanged, old, new)
	}
}

func (c *comparison) objects(path []string, old, new map[string][]byte) {
	all := maps.Clone(old)
	maps.Copy(all, new)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		at := append(slices.Clip(path), name)
		was, had := old[name]
		is, has := new[name]
		switch {
		case !had:
			c.add(at, ChangeAdded, nil, is)
		case !has:
			c.add(at, ChangeRemoved, was, nil)
		default:
			c.values(at, was, is)
		}
	}
}

// isSet tells the lists of a schema in which order says nothing.
func isSet(path []string) bool {
	if len(path) == 0 {
		return false
	}
	switch path[len(path)-1] {
	case "required", "enum", "type":
		return true
	}
	return false
}

func (c *comparison) sets(path []string, old, new [][]byte) {
	before := len(c.out)
	was, is := membership(old), membership(new)
	for _, v := range old {
		if !is[string(v)] {
			c.add(path, ChangeRemoved, v, nil)
		}
	}
	for _, v := range new {
		if !was[string(v)] {
			c.add(path, ChangeAdded, nil, v)
		}
	}
	if len(c.out) == before { // only the order, or a repetition
		c.add(path, ChangeChanged, joinArray(old), joinArray(new))
	}
}

func membership(values [][]byte) map[string]bool {
	set := make(map[string]bool, len(values))
	for _, v := range values {
		set[string(v)] = true
	}
	return set
}

func (c *comparison) arrays(path []string, old, new [][]byte) {
	for i := range max(len(old), len(new)) {
		at := append(slices.Clip(path), fmt.Sprintf("[%d]", i))
		switch {
		case i >= len(old):
			c.add(at, ChangeAdded, nil, new[i])
		case i >= len(new):
			c.add(at, ChangeRemoved, old[i], nil)
		default:
			c.values(at, old[i], new[i])
		}
	}
}

func elements(arr []byte) [][]byte {
	var out [][]byte
	for e := jsonx.Array(arr); e.Next(); {
		out = append(out, e.Value)
	}
	return out
}

// What names the place in words: `parameter "path"`, `description`.
func (c Change) What() string {
	path := c.Path
	if len(path) == 0 {
		return "definition"
	}
	what := "parameter"
	switch path[0] {
	case "inputSchema":
	case "outputSchema":
		what = "result member"
	default:
		return shownPath(path)
	}
	var names []string
	rest := path[1:]
	for len(rest) >= 2 && rest[0] == "properties" {
		names = append(names, rest[1])
		rest = rest[2:]
	}
	if len(rest) == 1 && rest[0] == "required" {
		rest, what = nil, "required "+what
	}
	if names == nil && rest != nil && len(rest) > 0 {
		return shownPath(path)
	}
	out := what
	if names != nil {
		out += " " + shownPath(names)
	}
	if len(rest) > 0 {
		out += ": " + shownPath(rest)
	}
	return out
}

func shownPath(path []string) string {
	var b strings.Builder
	for i, p := range path {
		if i > 0 && !strings.HasPrefix(p, "[") {
			b.WriteByte('.')
		}
		b.WriteString(visible(p, false))
	}
	return b.String()
}

// String shows the change to a person: where, what kind, and the values, with
// everything made visible that would not show. It may have several lines.
func (c Change) String() string {
	old, new := valueText(c.Old), valueText(c.New)
	if c.Kind != ChangeChanged {
		return fmt.Sprintf("%s %s: %s", c.What(), c.Kind, visible(old+new, false))
	}
	// What looks the same must not be shown the same.
	all := lookalike.Skeleton(old) == lookalike.Skeleton(new)
	if !strings.Contains(old+new, "\n") && len(old)+len(new) < 60 {
		return fmt.Sprintf("%s changed: %s → %s", c.What(), visible(old, all), visible(new, all))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s changed:", c.What())
	for _, line := range diffLines(strings.Split(old, "\n"), strings.Split(new, "\n")) {
		fmt.Fprintf(&b, "\n  %c %s", line.Sign, visible(line.Text, all))
	}
	return b.String()
}

// Lines shows the values of the change line by line, with everything made visible
// that would not show.
func (c Change) Lines() []DiffLine {
	old, new := valueText(c.Old), valueText(c.New)
	var out []DiffLine
	switch c.Kind {
	case ChangeAdded:
		out = replaced(nil, strings.Split(new, "\n"))
	case ChangeRemoved:
		out = replaced(strings.Split(old, "\n"), nil)
	default:
		out = diffLines(strings.Split(old, "\n"), strings.Split(new, "\n"))
	}
	all := c.Kind == ChangeChanged && lookalike.Skeleton(old) == lookalike.Skeleton(new)
	for i := range out {
		out[i].Text = visible(out[i].Text, all)
	}
	return out
}

// valueText is the text of a string, and the JSON of anything else.
func valueText(raw []byte) string {
	if s, ok := jsonx.Text(raw); ok {
		return s
	}
	return string(raw)
}
