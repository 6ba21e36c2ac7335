package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/test/need"
)

// hostileDefinitions are tools that once took time far beyond their size.
var hostileDefinitions = map[string]func(n int) []byte{
	"properties that change": func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"p%d":{"required":["b","a"]}`, i)
		}
		return []byte(`{"name":"x","inputSchema":{"properties":{` + b.String()[1:] + `}}}`)
	},
	"nested": func(n int) []byte {
		n = min(n/4, 400)
		return []byte(`{"name":"x","inputSchema":` + strings.Repeat(`{"required":["b","a"],"items":`, n) + `{}` + strings.Repeat(`}`, n) + `}`)
	},
	"one long set": func(n int) []byte {
		var b strings.Builder
		for i := range 4 * n {
			fmt.Fprintf(&b, `,"%d"`, 8*n-i)
		}
		return []byte(`{"name":"x","inputSchema":{"required":[` + b.String()[1:] + `],"enum":[` + b.String()[1:] + `]}}`)
	},
	"invisible text": func(n int) []byte {
		return []byte(`{"name":"x","description":"` + strings.Repeat("\u00e9 ", 8*n) + `","inputSchema":{"enum":[` + strings.TrimSuffix(strings.Repeat(`"é",`, 4*n), ",") + `]}}`)
	},
	"many lines": func(n int) []byte {
		return []byte(`{"name":"x","description":"` + strings.Repeat(`line\n`, n) + `"}`)
	},
}

func TestDefinitionsAreReadInLinearTime(t *testing.T) {
	for name, definition := range hostileDefinitions {
		t.Run(name, func(t *testing.T) {
			need.Linear(t, 1500, func(n int) func() {
				raw := definition(n)
				return func() {
					d := newDefinition(raw)
					if d.canonicalize(); d.err != nil {
						t.Error(d.err)
					}
					Hidden(raw)
				}
			})
		})
	}
}

func TestDiffsAreMadeInLinearTime(t *testing.T) {
	for name, definition := range hostileDefinitions {
		t.Run(name, func(t *testing.T) {
			need.Linear(t, 1500, func(n int) func() {
				old := definition(n)
				changed := []byte(strings.NewReplacer(`"b","a"`, `"c","d"`, `é`, `ü`, `line`, `words`, `1"`, `z"`).Replace(string(old)))
				return func() {
					for _, c := range Compare(old, changed) {
						_ = c.String()
						c.Lines()
					}
				}
			})
		})
	}
}

// TestPinsAreMadeInLinearTime: a server with many tools that come, go and return.
func TestPinsAreMadeInLinearTime(t *testing.T) {
	tools := func(prefix string, n int) []definition {
		out := make([]definition, n)
		for i := range out {
			out[i] = newDefinition(fmt.Appendf(nil, `{"name":"%s%d"}`, prefix, i))
		}
		return out
	}
	need.Linear(t, 300, func(n int) func() {
		first, second := tools("a", n), tools("b", n)
		return func() {
			rec, err := decodePins(nil)
			if err != nil {
				t.Error(err)
			}
			now := time.Now()
			for _, list := range [...][]definition{first, second, first} {
				if _, _, _, err := rec.observe(t.Context(), list, now); err != nil {
					t.Error(err)
				}
			}
			if _, err := rec.encode(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestPatternsAreMatchedInLinearTime(t *testing.T) {
	for _, pattern := range []string{"*a*a*a*a*a*a*a*b", "*?*?*?*?*b", "*[a-z]*[a-z]*[0-9]", strings.Repeat("a*", 20) + "b"} {
		g := compileGlob(pattern)
		need.Linear(t, 4000, func(n int) func() {
			name := strings.Repeat("a", n)
			return func() { g.catches(name, fold(name)) }
		})
	}
	need.Linear(t, 1000, func(n int) func() {
		name := strings.Repeat("%C3%A9\u00e9\uff41", n)
		return func() { fold(name) }
	})
}

// TestPinsOfOneServerAreLimited: a server that lists other tools every time does not
// make its record grow without end, and what cannot be pinned is blocked.
func TestPinsOfOneServerAreLimited(t *testing.T) {
	rec, err := decodePins(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range limit.PinnedTools {
		rec.Tools[fmt.Sprint("old", i)] = &pin{}
	}
	kept := newDefinition([]byte(`{"name":"old7"}`))
	rec.Tools["old7"] = &pin{seen: seen{Raw: kept.sum}}
	found, _, _, err := rec.observe(t.Context(), []definition{kept, newDefinition([]byte(`{"name":"one more"}`))}, time.Now())
	if err != nil || len(rec.Tools) != limit.PinnedTools {
		t.Errorf("%d tools are pinned: %v", len(rec.Tools), err)
	}
	if f := found["one more"]; f == nil || !f.blocks() {
		t.Errorf("a tool without a pin may be called: %+v", f)
	}
	if f := found["old7"]; f == nil || f.blocks() {
		t.Errorf("a tool that is what it was is blocked: %+v", f)
	}
}

// TestNotesOfOneListAreLimited: a server that renames all its tools does not fill the
// log.
func TestNotesOfOneListAreLimited(t *testing.T) {
	heard := 0
	h := newFakeHost(simpleTool("first"))
	g := openGate(t, h, nil, &Options{OnNote: func(Key, Note) { heard++ }})
	var notes []Note
	for i := range 10 * limit.NotesPerList {
		notes = append(notes, Note{Tool: fmt.Sprint("tool", i), Kind: NoteNew})
	}
	g.tell(Key{Server: "s"}, notes)
	if heard != limit.NotesPerList {
		t.Errorf("%d notes, want %d", heard, limit.NotesPerList)
	}
}

// TestListsAreNotReadForNobody: work on a list ends when the caller has left.
func TestListsAreNotReadForNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rec, err := decodePins(nil)
	if err != nil {
		t.Fatal(err)
	}
	tools := []definition{newDefinition([]byte(`{"name":"a"}`)), newDefinition([]byte(`{"name":"b"}`))}
	cancel()
	if _, _, _, err := rec.observe(ctx, tools, time.Now()); !errors.Is(err, context.Canceled) || len(rec.Tools) != 0 {
		t.Errorf("%d tools were read: %v", len(rec.Tools), err)
	}
}
