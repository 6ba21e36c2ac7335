package surface

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/usher-mcp/usher/mcp"
)

// statusName is the name of a tool that the direct view adds. It holds no separator,
// so no tool of a server can have it.
const statusName = "status"

var statusTool = []byte(`{"name":"status","title":"State of servers and logins","description":"Health and last error of the servers behind these tools, and progress of logins.","inputSchema":{"type":"object","properties":{"server":{"type":"string","description":"name or name@label; all when missing"}}},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`)

// statusText is the state of the servers that exist for an agent and of its logins,
// or of the named one, as JSON.
func (s *Surface) statusText(ctx context.Context, a Agent, server string) (text string, failed bool) {
	logins, err := s.gate.LoginStatus(ctx, a.who, server)
	if err != nil {
		s.opt.Log.Warn("cannot read the state of logins", "error", err)
	}
	snap := s.snapshot(ctx, a)
	if server != "" && snap.by[server] == nil && len(logins) == 0 {
		s.refuse(ctx, a, server, mcp.MethodToolsList)
		return noServer(snap, server, a.at.hints), true
	}
	out := struct {
		Servers []Status `json:"servers"`
		Logins  []Login  `json:"logins,omitempty"`
	}{Servers: []Status{}, Logins: logins}
	for _, st := range s.gate.Status(ctx, a.who, server) {
		one := statusOf(st)
		if one.NeedsLogin && s.gate.CanLogin() && a.at.hints.login != "" {
			one.Next = fmt.Sprintf(a.at.hints.login, one.Server)
		}
		out.Servers = append(out.Servers, one)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return err.Error(), true
	}
	return string(raw), false
}
