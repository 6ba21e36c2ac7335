package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/policy/pins"
	"github.com/usher-mcp/usher/test/need"
)

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

// TestNotesOfOneListAreLimited: a server that renames all its tools does not fill the
// log.
func TestNotesOfOneListAreLimited(t *testing.T) {
	heard := 0
	h := newFakeHost(simpleTool("first"))
	g := openGate(t, h, nil, &Options{OnNote: func(Key, pins.Note) { heard++ }})
	var notes []pins.Note
	for i := range 10 * limit.NotesPerList {
		notes = append(notes, pins.Note{Tool: fmt.Sprint("tool", i), Kind: pins.NoteNew})
	}
	g.tell(Key{Server: "s"}, notes)
	if heard != limit.NotesPerList {
		t.Errorf("%d notes, want %d", heard, limit.NotesPerList)
	}
}
