package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestShapes runs every command of docs/cli-json.md and wants JSON of the very
// shape that the page shows: the same keys, with values of the same type.
func TestShapes(t *testing.T) {
	p := jsonPage(t)
	w := newWorld(t)
	for _, b := range Blocks(p.text) {
		command, ok := b.Attrs["from"]
		if !ok {
			if err := w.prepare(t.Context(), b); err != nil {
				t.Fatalf("%s:%d: %v", p.name, b.First, err)
			}
			continue
		}
		got, err := w.run(t.Context(), command+" 2>/dev/null")
		if err != nil {
			t.Fatalf("%s:%d: %s: %v", p.name, b.First, command, err)
		}
		want, err := shape(b.Text())
		if err != nil {
			t.Fatalf("%s:%d: %v", p.name, b.First, err)
		}
		is, err := shape(got)
		if err != nil {
			t.Errorf("%s:%d: %s: %v\n%s", p.name, b.First, command, err, got)
			continue
		}
		if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("%s:%d: %s has another shape (-page +program)\n%s\n%s", p.name, b.First, command, diff, got)
		}
		described(t, p, b, want)
	}
}

// described wants every key of a shape in the table above it, if there is one.
func described(t *testing.T, p page, b Block, shape []string) {
	t.Helper()
	lines := strings.Split(p.text, "\n")[:b.First-1]
	head := 0
	for i, l := range lines {
		if strings.HasPrefix(l, "## ") {
			head = i
		}
	}
	keys := tableKeys(lines[head:])
	if len(keys) == 0 {
		return
	}
	for _, s := range shape {
		path, _, _ := strings.Cut(s, " ")
		covers := func(k string) bool {
			return k == path || strings.HasPrefix(path, k+".") || strings.HasPrefix(path, k+"[") || strings.HasPrefix(k, path)
		}
		if slices.ContainsFunc(keys, covers) {
			continue
		}
		t.Errorf("%s:%d: %s is not described", p.name, b.First, path)
	}
}

var firstCell = regexp.MustCompile("^\\| `([^`]+)`")

func tableKeys(lines []string) []string {
	var out []string
	for _, l := range lines {
		if m := firstCell.FindStringSubmatch(l); m != nil {
			out = append(out, m[1])
		}
	}
	return out
}

// TestShapesAreComplete wants a shape of every command that has --json.
func TestShapesAreComplete(t *testing.T) {
	root, err := Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := jsonPage(t)
	for _, c := range root.All() {
		if c.HasFlag("--json") && !strings.Contains(p.text, "\n## "+c.Name()+"\n") {
			t.Errorf("docs/cli-json.md says nothing of %s --json", c.Name())
		}
	}
}

func jsonPage(t *testing.T) page {
	t.Helper()
	all := pages(t)
	i := slices.IndexFunc(all, func(p page) bool { return p.name == "cli-json.md" })
	if i < 0 {
		t.Fatal("there is no docs/cli-json.md")
	}
	return all[i]
}

// shape lists the paths of a JSON text, or of several after one another, with the
// type at each, sorted. Members of lists share a path that ends with []. What a
// server defines itself (definition, inputSchema and the like) is opaque.
func shape(text string) ([]string, error) {
	seen := map[string]bool{}
	dec := json.NewDecoder(strings.NewReader(text))
	n := 0
	for ; ; n++ {
		var v any
		if err := dec.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		walk("", v, seen)
	}
	if n == 0 {
		return nil, fmt.Errorf("no JSON")
	}
	var out []string
	for s := range seen {
		out = append(out, s)
	}
	slices.Sort(out)
	return out, nil
}

var opaque = []string{"definition", "inputSchema", "outputSchema", "annotations", "structuredContent", "schema", "old", "new"}

func walk(path string, v any, seen map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		seen[path+" object"] = true
		for k, x := range v {
			inner := strings.TrimPrefix(path+"."+k, ".")
			if slices.Contains(opaque, k) {
				seen[inner+" …"] = true
				continue
			}
			walk(inner, x, seen)
		}
	case []any:
		seen[path+" list"] = true
		for _, x := range v {
			walk(path+"[]", x, seen)
		}
	case string:
		seen[path+" string"] = true
	case float64:
		seen[path+" number"] = true
	case bool:
		seen[path+" boolean"] = true
	case nil:
		seen[path+" null"] = true
	}
}

func TestShapeFinds(t *testing.T) {
	for _, tt := range []struct{ a, b string }{
		{`{"a":1}`, `{"b":1}`},
		{`{"a":1}`, `{"a":"1"}`},
		{`{"a":[{"b":1}]}`, `{"a":[{"b":1,"c":2}]}`},
		{`{"a":1}`, `{"a":1}{"b":1}`},
	} {
		a, errA := shape(tt.a)
		b, errB := shape(tt.b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if slices.Equal(a, b) {
			t.Errorf("%s and %s have one shape %q", tt.a, tt.b, a)
		}
	}
	if _, err := shape(string(bytes.TrimSpace([]byte(" ")))); err == nil {
		t.Error("nothing has a shape")
	}
}
