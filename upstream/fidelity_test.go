package upstream_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// TestFidelity wants definitions and results of the corpus handed on as the server
// sent them, byte for byte, over every transport and in both eras.
func TestFidelity(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv, _ := fakeTarget(t, kind)
			c := dial(t, srv, nil)
			list, err := c.List(t.Context(), mcp.MethodToolsList)
			if err != nil {
				t.Fatal(err)
			}
			defs := map[string]string{}
			for _, item := range list.Items {
				defs[jsonx.GetText(item, "name")] = string(item)
			}
			for _, s := range fake.Corpus() {
				if diff := cmp.Diff(string(s.Tool), defs[s.ToolName()]); diff != "" {
					t.Errorf("%s: definition (-want +got)\n%s", s.Name, diff)
				}
				result, err := c.Do(t.Context(), callTool(s.ToolName(), `{}`))
				if err != nil {
					t.Errorf("%s: %v", s.Name, err)
				}
				if diff := cmp.Diff(string(s.Result), string(result)); diff != "" {
					t.Errorf("%s: result (-want +got)\n%s", s.Name, diff)
				}
			}
		})
	}
}

// TestArgumentsArriveUntouched sends arguments that typed readers bend.
func TestArgumentsArriveUntouched(t *testing.T) {
	const args = `{ "n":9007199254740993 , "s":"\u00e9é","z":[1.0,-0,1E+2],"a":{}}`
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv, _ := fakeTarget(t, kind)
			c := dial(t, srv, nil)
			result, err := c.Do(t.Context(), callTool("echo", args))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := jsonx.Get(result, "structuredContent")
			if diff := cmp.Diff(args, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestListGuards wants endless lists to end with a clear error, and an empty
// cursor to be followed.
func TestListGuards(t *testing.T) {
	for _, tt := range []struct{ sw, want string }{
		{"loop", "protocol"}, {"manypages", "protocol"}, {"manypages=900", "ok"}, {"manytools=20000", "ok"}, {"emptycursor", "ok"},
	} {
		t.Run(tt.sw, func(t *testing.T) {
			t.Parallel()
			srv, _ := fakeTarget(t, "http/modern", tt.sw)
			srv.MaxMessageBytes = 16 << 20
			c := dial(t, srv, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			list, err := c.List(ctx, mcp.MethodToolsList)
			if outcome(err) != tt.want {
				t.Errorf("%s: %v, want %s", tt.sw, err, tt.want)
			}
			if tt.sw == "emptycursor" && len(list.Items) != len(fake.DefaultTools())+len(fake.Corpus()) {
				t.Errorf("%d tools: the page behind the empty cursor is missing", len(list.Items))
			}
		})
	}
}

// TestInvalidHeaderTools wants tools with broken header annotations left out on
// HTTP of the modern era, and the others' arguments mirrored.
func TestInvalidHeaderTools(t *testing.T) {
	srv, ledger := fakeTarget(t, "http/modern", "invalid-header-tools")
	c := dial(t, srv, nil)
	list, err := c.List(t.Context(), mcp.MethodToolsList)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(fake.DefaultTools()) + len(fake.Corpus()); len(list.Items) != want {
		t.Errorf("%d tools are offered, want the %d valid ones", len(list.Items), want)
	}
	if _, err := c.Do(t.Context(), callTool("region", `{"region":" Zürich","shard":7.0,"dry":true}`)); err != nil {
		t.Fatal(err)
	}
	calls := ledger.Calls("region")
	want := map[string]string{"Mcp-Param-Region": "=?base64?IFrDvHJpY2g=?=", "Mcp-Param-Shard": "7", "Mcp-Param-Dry": "true"}
	for k, v := range want {
		if got := calls[0].Headers[k]; got != v {
			t.Errorf("%s: %q, want %q", k, got, v)
		}
	}
}

// TestHeadersLearnedOnMismatch calls a tool whose annotations were never listed:
// the server refuses, the list is read, the call is repeated.
func TestHeadersLearnedOnMismatch(t *testing.T) {
	srv, ledger := fakeTarget(t, "http/modern")
	c := dial(t, srv, nil)
	if _, err := c.Call(t.Context(), callTool("region", `{"region":"eu"}`), nil); err != nil {
		t.Fatal(err)
	}
	if n := ledger.Count(mcp.MethodToolsList); n != 1 {
		t.Errorf("%d lists", n)
	}
}

// TestMetaFitsTheEra wants no sign of the modern era in a request to an older
// server, and everything it demands in one to a modern server.
func TestMetaFitsTheEra(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv, _ := fakeTarget(t, kind)
			c := dial(t, srv, &upstream.Options{ClientName: "tester", ClientVersion: "9", Capabilities: []byte(`{"roots":{}}`)})
			agent := fmt.Sprintf(`{"name":"meta","arguments":{},"_meta":{%q:"1999","traceparent":"00-1","x":9007199254740993}}`, mcp.MetaVersion)
			result, err := c.Do(t.Context(), mcp.Request{Method: mcp.MethodToolsCall, Params: []byte(agent)})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := jsonx.Get(result, "structuredContent")
			want := `{"traceparent":"00-1","x":9007199254740993}`
			if mcp.Stateless(c.Version()) {
				want = fmt.Sprintf(`{%q:%q,"traceparent":"00-1","x":9007199254740993,%q:{"name":"tester","version":"9"},%q:{"roots":{}}}`,
					mcp.MetaVersion, mcp.Latest, mcp.MetaClientInfo, mcp.MetaClientCaps)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
