package pins

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
					d := NewDefinition(raw)
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
	tools := func(prefix string, n int) []Definition {
		out := make([]Definition, n)
		for i := range out {
			out[i] = NewDefinition(fmt.Appendf(nil, `{"name":"%s%d"}`, prefix, i))
		}
		return out
	}
	need.Linear(t, 300, func(n int) func() {
		first, second := tools("a", n), tools("b", n)
		return func() {
			rec, err := decode(nil)
			if err != nil {
				t.Error(err)
			}
			now := time.Now()
			for _, list := range [...][]Definition{first, second, first} {
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

// TestPinsOfOneServerAreLimited: a server that lists other tools every time does not
// make its record grow without end, and what cannot be pinned is blocked.
func TestPinsOfOneServerAreLimited(t *testing.T) {
	rec, err := decode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range limit.PinnedTools {
		rec.Tools[fmt.Sprint("old", i)] = &pin{}
	}
	kept := NewDefinition([]byte(`{"name":"old7"}`))
	rec.Tools["old7"] = &pin{seen: seen{Raw: kept.sum}}
	found, _, _, err := rec.observe(t.Context(), []Definition{kept, NewDefinition([]byte(`{"name":"one more"}`))}, time.Now())
	if err != nil || len(rec.Tools) != limit.PinnedTools {
		t.Errorf("%d tools are pinned: %v", len(rec.Tools), err)
	}
	if f := found["one more"]; f == nil || !f.Blocks() {
		t.Errorf("a tool without a pin may be called: %+v", f)
	}
	if f := found["old7"]; f == nil || f.Blocks() {
		t.Errorf("a tool that is what it was is blocked: %+v", f)
	}
}

// TestListsAreNotReadForNobody: work on a list ends when the caller has left.
func TestListsAreNotReadForNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rec, err := decode(nil)
	if err != nil {
		t.Fatal(err)
	}
	tools := []Definition{NewDefinition([]byte(`{"name":"a"}`)), NewDefinition([]byte(`{"name":"b"}`))}
	cancel()
	if _, _, _, err := rec.observe(ctx, tools, time.Now()); !errors.Is(err, context.Canceled) || len(rec.Tools) != 0 {
		t.Errorf("%d tools were read: %v", len(rec.Tools), err)
	}
}
