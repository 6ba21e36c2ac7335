package fake

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// listen is one open subscriptions/listen request.
type listen struct {
	id    mcp.ID
	out   sink
	kinds []string // notification methods that were asked for
	uris  []string

	drop chan struct{} // closed when it is dropped
	over chan struct{} // closed when it ends in order

	mu       sync.Mutex // guards what follows; held while sending, so that the ack is first
	left     int        // notifications until the stream is dropped, -1 for never
	finished bool
}

// listen serves a subscription until the client cancels it, the server closes or
// a switch drops it.
func (s *Server) listen(ctx context.Context, ex *exchange) ([]byte, error) {
	wanted, _ := jsonx.Get(ex.msg.Params, "notifications")
	if jsonx.TypeOf(wanted) != "object" {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params lack notifications")
	}
	l := &listen{id: ex.msg.ID, out: ex.out, left: -1, drop: make(chan struct{}), over: make(chan struct{})}
	l.read(wanted)
	v, dropping := s.sw.fire("listen-drop", ex.msg.Method)
	if dropping {
		l.left = v.number(0)
	}
	l.mu.Lock()
	s.setListen(l, true)
	defer s.setListen(l, false)
	_ = l.out.send(notification(mcp.MethodNotifyListenOK, l.tag(jsonx.Set(nil, "notifications", wanted))), false)
	if l.left == 0 {
		close(l.drop)
	}
	l.mu.Unlock()
	s.note(ex.sess, Entry{Event: EventListening, Method: ex.msg.Method, ID: ex.msg.ID.JSON()})
	select {
	case <-l.over:
	case <-l.drop:
		s.note(ex.sess, Entry{Event: EventFault, Name: "listen-drop", Method: ex.msg.Method, ID: ex.msg.ID.JSON()})
		ex.out.end()
		<-ctx.Done()
	case <-ctx.Done():
	}
	return l.tag([]byte(`{}`)), nil
}

func (l *listen) read(wanted []byte) {
	for m := jsonx.Object(wanted); m.Next(); {
		switch key := string(m.Key); {
		case key == "resourceSubscriptions":
			for e := jsonx.Array(m.Value); e.Next(); {
				uri, _ := jsonx.Text(e.Value)
				l.uris = append(l.uris, uri)
			}
		case string(m.Value) == "true":
			l.kinds = append(l.kinds, map[string]string{
				"toolsListChanged":     mcp.MethodNotifyTools,
				"promptsListChanged":   mcp.MethodNotifyPrompts,
				"resourcesListChanged": mcp.MethodNotifyRes,
			}[key])
		}
	}
}

// tag adds the subscription id that tells streams apart on stdio.
func (l *listen) tag(params []byte) []byte {
	return jsonx.Set(params, "_meta", fmt.Appendf(nil, `{%q:%s}`, mcp.MetaSubscription, l.id))
}

func (l *listen) notify(method, uri string, params []byte) {
	if !slices.Contains(l.kinds, method) && !(method == mcp.MethodNotifyUpdated && slices.Contains(l.uris, uri)) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 0 {
		return
	}
	_ = l.out.send(notification(method, l.tag(params)), false)
	if l.left--; l.left == 0 {
		close(l.drop)
	}
	if l.left < -1 {
		l.left = -1
	}
}

func (l *listen) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.finished {
		l.finished = true
		close(l.over)
	}
}

func (s *Server) allListens() []*listen {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*listen
	for l := range s.listens {
		all = append(all, l)
	}
	return all
}

func (s *Server) setListen(l *listen, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.listens[l] = true
	} else {
		delete(s.listens, l)
	}
}
