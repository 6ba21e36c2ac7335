package gateway

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

func appendFreshness(dst []byte, ms int64, public bool) []byte {
	dst = strconv.AppendInt(append(dst, `,"ttlMs":`...), max(ms, 0), 10)
	if public {
		return append(dst, `,"cacheScope":"public"`...)
	}
	return append(dst, `,"cacheScope":"private"`...)
}

// maxURIs bounds the resources of one subscription.
const maxURIs = 1000

// listen serves subscriptions/listen: an acknowledgement, then changes, and a
// result when the gateway ends before the agent does.
func (g *Gateway) listen(ctx context.Context, q *request) response {
	want, accepted, bad := readSubscription(q.Params)
	if bad != nil {
		return response{err: bad}
	}
	back := g.limits.stream(q.agent.Principal)
	if back == nil {
		g.count.limited.Add(1)
		return failure(mcp.CodeInternal, "too many subscriptions at once")
	}
	defer back()
	if !q.out.CanStream() {
		return failure(mcp.CodeInvalidRequest, "a subscription needs a stream; Accept must allow text/event-stream")
	}
	tag := jsonx.Edit{Key: mcp.MetaSubscription, Value: []byte(q.id.JSON())}
	ack := wire.EditMeta(jsonx.Set(nil, "notifications", accepted), tag)
	t := &subscriptionWriter{out: q.out, tag: tag}
	want.Ready = func() { t.acknowledge(ack) }
	late := time.AfterFunc(ackPatience, want.Ready)
	defer late.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	if !g.spawn(func() {
		ended <- q.end.view.Listen(ctx, q.agent, want, func(m mcp.Message) {
			if wanted(&want, m) {
				t.tell(m)
			}
		})
	}) {
		return response{none: true}
	}
	var err error
	select {
	case err = <-ended:
		t.acknowledge(ack)
	case <-g.draining:
		cancel()
		<-ended
		t.acknowledge(ack)
	}
	if err != nil && ctx.Err() != nil {
		return response{none: true}
	}
	return response{result: wire.EditMeta([]byte(`{"resultType":"complete"}`), tag)}
}

// ackPatience is how long the acknowledgement waits for servers that do not answer:
// those that do must not wait for them.
const ackPatience = 5 * time.Second

// maxHeld bounds the messages that wait for the acknowledgement.
const maxHeld = 1000

// teller sends a subscription's messages: the acknowledgement first, and that not
// before changes are heard.
type subscriptionWriter struct {
	out stream.Sender
	tag jsonx.Edit

	mu   sync.Mutex // guards what follows, and the order of sending
	told bool
	held [][]byte
	size int // of held
}

func (t *subscriptionWriter) acknowledge(params []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told {
		return
	}
	t.told = true
	t.out.Send(mcp.AppendNotification(nil, mcp.MethodNotifyListenOK, params))
	for _, message := range t.held {
		t.out.Send(message)
	}
	t.held, t.size = nil, 0
}

func (t *subscriptionWriter) tell(m mcp.Message) {
	message := mcp.AppendNotification(nil, m.Method, wire.EditMeta(m.Params, t.tag))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told {
		t.out.Send(message)
	} else if len(t.held) < maxHeld && t.size+len(message) <= stream.MaxQueuedBytes {
		t.held = append(t.held, message)
		t.size += len(message)
	}
}

// readSubscription reads the filter, and returns it without what is unknown.
func readSubscription(params []byte) (want surface.Subscription, accepted []byte, bad *mcp.Error) {
	filter, ok := jsonx.Get(params, "notifications")
	if !ok || jsonx.TypeOf(filter) != "object" {
		return want, nil, mcp.Errorf(mcp.CodeInvalidParams, "params lack the object notifications")
	}
	accepted = []byte("{}")
	for m := jsonx.Object(filter); m.Next(); {
		on := string(m.Value) == "true"
		switch string(m.Key) {
		case "toolsListChanged":
			want.Tools = on
		case "promptsListChanged":
			want.Prompts = on
		case "resourcesListChanged":
			want.Resources = on
		case "resourceSubscriptions":
			if want.URIs, bad = readURIs(m.Value); bad != nil {
				return want, nil, bad
			}
			on = len(want.URIs) > 0
		default:
			continue
		}
		if on {
			accepted = jsonx.Set(accepted, string(m.Key), m.Value)
		}
	}
	return want, accepted, nil
}

func readURIs(list []byte) ([]string, *mcp.Error) {
	var out []string
	e := jsonx.Array(list)
	for e.Next() {
		uri, ok := jsonx.StrictText(e.Value)
		if !ok || len(out) == maxURIs {
			return nil, mcp.Errorf(mcp.CodeInvalidParams, "resourceSubscriptions must be at most %d strings", maxURIs)
		}
		out = append(out, uri)
	}
	if e.Err() != nil {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "resourceSubscriptions is %s, not an array", jsonx.TypeOf(list))
	}
	return out, nil
}

// wanted reports whether a change is one that was subscribed to.
func wanted(want *surface.Subscription, m mcp.Message) bool {
	switch m.Method {
	case mcp.MethodNotifyTools:
		return want.Tools
	case mcp.MethodNotifyPrompts:
		return want.Prompts
	case mcp.MethodNotifyRes:
		return want.Resources
	case mcp.MethodNotifyUpdated:
		return len(want.URIs) > 0
	}
	return false
}
