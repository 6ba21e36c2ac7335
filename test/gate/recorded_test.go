package gate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// TestRefusalsAreRecorded asks for things outside of a token's scope in ways that no
// server is asked for; each leaves one record at least.
func TestRefusalsAreRecorded(t *testing.T) {
	c := caller{name: "narrow", tools: []string{"crm/read"}}
	w := newWorld(t, []caller{c, {name: "owner"}})
	w.warm(t)
	meta := func(action, server, tool string) request {
		return request{"mcp", fmt.Sprintf(`"name":"mcp","arguments":{"action":%q,"server":%q,"tool":%q}`, action, server, tool)}
	}
	for _, tt := range []struct {
		path, method string
		request
		server string
	}{
		{"/meta/mcp", mcp.MethodToolsCall, meta("list_tools", "hr", ""), "hr"},
		{"/meta/mcp", mcp.MethodToolsCall, meta("describe_tool", "hr", "read"), "hr"},
		{"/meta/mcp", mcp.MethodToolsCall, meta("describe_tool", "crm", "write"), "crm"},
		{"/meta/mcp", mcp.MethodToolsCall, meta("status", "hr", ""), "hr"},
		{"/direct/mcp", mcp.MethodPromptsGet, request{"crm__greet", `"name":"crm__greet"`}, "crm"},
		{"/direct/mcp", mcp.MethodComplete, request{"", `"ref":{"type":"ref/prompt","name":"hr__greet"},"argument":{"name":"who","value":"a"}`}, "hr"},
		{"/direct/mcp", mcp.MethodResourcesRead, request{"usher://hr/hr://doc", `"uri":"usher://hr/hr://doc"`}, "hr"},
	} {
		w.mu.Lock()
		w.finished = nil
		w.mu.Unlock()
		_, reply := w.post(t, c.name, tt.path, tt.method, tt.name, tt.params)
		w.mu.Lock()
		if !slices.ContainsFunc(w.finished, func(f policy.Finished) bool {
			return f.Outcome == policy.OutcomeDenied && f.Key.Server == tt.server && f.Caller.Credential != ""
		}) {
			t.Errorf("%s %s {%s} is not recorded: %+v\n%s", tt.path, tt.method, tt.params, w.finished, reply)
		}
		w.mu.Unlock()
	}
}
