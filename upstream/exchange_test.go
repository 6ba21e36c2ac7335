package upstream

import (
	"testing"

	"github.com/usher-mcp/usher/mcp"
)

// What a server says on the stream of a request belongs to that request, except
// for changes: those are for whoever listens.
func TestNotificationsFindTheirReader(t *testing.T) {
	for _, tt := range []struct {
		on, said string
		want     string // who hears it
	}{
		{mcp.MethodToolsCall, mcp.MethodNotifyMessage, "request"},
		{mcp.MethodToolsCall, mcp.MethodNotifyTools, "connection"},
		{mcp.MethodToolsCall, mcp.MethodNotifyPrompts, "connection"},
		{mcp.MethodToolsCall, mcp.MethodNotifyRes, "connection"},
		{mcp.MethodToolsCall, mcp.MethodNotifyUpdated, "connection"},
		{mcp.MethodListen, mcp.MethodNotifyTools, "request"},
		{mcp.MethodListen, mcp.MethodNotifyUpdated, "request"},
		{"", mcp.MethodNotifyTools, "connection"},
	} {
		heard := ""
		r := &router{onNotify: func(mcp.Message) { heard += "connection" }}
		var x *exchange
		if tt.on != "" {
			x = &exchange{method: tt.on, notify: func(mcp.Message) { heard += "request" }}
		}
		r.notification(x, mcp.Message{Method: tt.said, Params: []byte(`{}`)})
		if heard != tt.want {
			t.Errorf("%s during %q: heard by %q, want %q", tt.said, tt.on, heard, tt.want)
		}
	}
}
