package upstream_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// TestExcessiveDefinitionsAreLeftOut: the other tools of the server stay usable.
func TestExcessiveDefinitionsAreLeftOut(t *testing.T) {
	whole := len(fake.DefaultTools()) + len(fake.Corpus())
	for sw, want := range map[string]int{
		"deep-definition": whole, "deep-definition=400": whole + 1,
		"huge-definition": whole, "huge-definition=512": whole + 1,
		"quadratic-definition=60000": whole, "quadratic-definition=1000": whole + 1,
		"long-names": whole,
	} {
		t.Run(sw, func(t *testing.T) {
			t.Parallel()
			srv, _ := fakeTarget(t, "http/modern", sw)
			srv.MaxMessageBytes = 16 << 20
			c := dial(t, srv, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			list, err := c.List(ctx, mcp.MethodToolsList)
			if err != nil || len(list.Items) != want {
				t.Fatalf("%d tools, want %d: %v", len(list.Items), want, err)
			}
			for _, tool := range list.Items {
				if len(jsonx.GetText(tool, "name")) > limit.NameSize {
					t.Errorf("a tool is named %.20s…", jsonx.GetText(tool, "name"))
				}
			}
			if _, err := c.Do(ctx, callTool("echo", `{}`)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLongAddressesAreLeftOut(t *testing.T) {
	for n, want := range map[int]int{limit.URISize: 1, limit.URISize - 7: 2} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := fake.New(&fake.Options{Resources: []fake.Resource{
				{Def: []byte(`{"uri":"fake://short"}`)}, {Def: fmt.Appendf(nil, `{"uri":"fake://%s"}`, strings.Repeat("a", n))},
			}})
			hs := httptest.NewServer(s.Handler())
			t.Cleanup(hs.Close)
			t.Cleanup(s.Close)
			srv := config.Server{Name: "fake", Transport: config.TransportHTTP, URL: hs.URL}
			list, err := dial(t, srv, nil).List(t.Context(), mcp.MethodResourcesList)
			if err != nil || len(list.Items) != want {
				t.Errorf("%d resources, want %d: %v", len(list.Items), want, err)
			}
		})
	}
}
