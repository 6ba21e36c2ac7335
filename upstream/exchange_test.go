package upstream

import (
	"testing"

	"github.com/usher-mcp/usher/internal/wire"
)

// What a server says on the stream of a request belongs to that request, except
// for changes: those are for whoever listens.
func TestNotificationsFindTheirReader(t *testing.T) {
	for _, tt := range []struct {
		on, said string
		want     string // who hears it
	}{
		{wire.MethodToolsCall, wire.MethodNotifyMessage, "request"},
		{wire.MethodToolsCall, wire.MethodNotifyTools, "connection"},
		{wire.MethodToolsCall, wire.MethodNotifyPrompts, "connection"},
		{wire.MethodToolsCall, wire.MethodNotifyRes, "connection"},
		{wire.MethodToolsCall, wire.MethodNotifyUpdated, "connection"},
		{wire.MethodListen, wire.MethodNotifyTools, "request"},
		{wire.MethodListen, wire.MethodNotifyUpdated, "request"},
		{"", wire.MethodNotifyTools, "connection"},
	} {
		heard := ""
		r := &router{onNotify: func(wire.Message) { heard += "connection" }}
		var x *exchange
		if tt.on != "" {
			x = &exchange{method: tt.on, notify: func(wire.Message) { heard += "request" }}
		}
		r.notification(x, wire.Message{Method: tt.said, Params: []byte(`{}`)})
		if heard != tt.want {
			t.Errorf("%s during %q: heard by %q, want %q", tt.said, tt.on, heard, tt.want)
		}
	}
}
