package surface

import (
	"fmt"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
	"github.com/usher-mcp/usher/test/need"
)

// bigSource is a server with n tools, resources and templates.
func bigSource(n int) source {
	src := source{Server: Server{Name: "s", Whole: true}, label: "s", known: true}
	for i := range n {
		def := fmt.Appendf(nil, `{"name":"tool%d","description":"Tool number %d","inputSchema":{"properties":{"p%d":{}}}}`, i, i, i)
		src.listing.Tools = append(src.listing.Tools, policy.Tool{Server: "s", Name: fmt.Sprint("tool", i), Own: fmt.Sprint("tool", i), Definition: def})
		src.listing.Prompts = append(src.listing.Prompts, def)
		src.listing.Resources = append(src.listing.Resources, fmt.Appendf(nil, `{"uri":"a://%d"}`, i))
		src.listing.Templates = append(src.listing.Templates, fmt.Appendf(nil, `{"uriTemplate":"a://%d/{x}"}`, i))
	}
	return src
}

func TestSnapshotsAreMadeInLinearTime(t *testing.T) {
	need.Linear(t, 300, func(n int) func() {
		src := bigSource(n)
		return func() { newSnapshot([]source{src}, false, naming.Scheme{Separator: "__"}, false).index() }
	})
	need.Linear(t, 1000, func(n int) func() {
		snap := newSnapshot([]source{bigSource(n)}, false, naming.Scheme{Separator: "__"}, false)
		return func() { toolLines(snap, &snap.sources[0]) }
	})
}

// TestTemplatesAreLimited: a list of resource templates, and each of them, costs a
// bounded time for every address that is looked up.
func TestTemplatesAreLimited(t *testing.T) {
	src := bigSource(limit.Templates + 500)
	snap := newSnapshot([]source{src}, false, naming.Scheme{Separator: "__"}, false)
	if len(snap.patterns) != limit.Templates {
		t.Errorf("%d templates are matched, want %d", len(snap.patterns), limit.Templates)
	}
	for _, text := range []string{"{x}a", "{x}", "a{x}", "{x", "{}a{"} {
		need.Linear(t, 2000, func(n int) func() {
			p, uri := naming.ParseTemplate(strings.Repeat(text, n)+"b"), strings.Repeat("a", 4*n)
			return func() { naming.ParseTemplate(strings.Repeat(text, n)); p.Matches(uri) }
		})
	}
}
