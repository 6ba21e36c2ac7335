package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
				rec.observe(list, now)
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
