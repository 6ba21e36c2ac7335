package gateway

import (
	"bytes"
	"testing"

	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// What a server says before its subscription is acknowledged is kept within bounds.
func TestMessagesBeforeTheAcknowledgement(t *testing.T) {
	b := stream.NewQueue(nil, "")
	tell := &subscriptionWriter{out: b, tag: jsonx.Edit{Key: mcp.MetaSubscription, Value: []byte("1")}}
	params := append(append([]byte(`{"uri":"a","x":"`), bytes.Repeat([]byte("x"), 1<<20)...), `"}`...)
	for range 100 {
		tell.tell(mcp.Message{Method: mcp.MethodNotifyUpdated, Params: params})
	}
	if n := len(tell.held); n > stream.MaxQueuedBytes/len(params) {
		t.Errorf("%d messages of a MiB wait", n)
	}
}
