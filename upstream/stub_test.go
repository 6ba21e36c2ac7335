package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// stub is a legacy server over HTTP without a network, so that hours of it take no
// time.
type stub struct {
	get    func(*http.Request) *http.Response              // nil: 405
	call   func(*http.Request, mcp.Message) *http.Response // any other request; nil from it: the request ended
	answer func(*http.Request) *http.Response              // a POST with an answer of the client
}

// RoundTrip implements [http.RoundTripper].
func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := s.respond(req)
	if resp == nil || req.Context().Err() != nil {
		return nil, context.Cause(req.Context())
	}
	return resp, nil
}

func (s *stub) respond(req *http.Request) *http.Response {
	if req.Method == http.MethodGet && s.get != nil {
		return s.get(req)
	}
	if req.Method != http.MethodPost {
		return respond(http.StatusMethodNotAllowed, "", strings.NewReader(""))
	}
	body, _ := io.ReadAll(req.Body) // it is memory
	m, _ := mcp.Parse(body)
	switch {
	case m.Method == mcp.MethodInitialize:
		return result(m, `{"protocolVersion":"`+mcp.LatestLegacy+`","capabilities":{},"serverInfo":{"name":"stub","version":"1"}}`)
	case m.Kind() == mcp.KindRequest:
		return s.call(req, m)
	case m.Kind() == mcp.KindResponse:
		return s.answer(req)
	}
	return respond(http.StatusAccepted, "", strings.NewReader(""))
}

func respond(status int, kind string, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, ContentLength: -1, Body: io.NopCloser(body)}
}

func result(m mcp.Message, result string) *http.Response {
	return respond(http.StatusOK, "application/json", strings.NewReader(string(mcp.AppendResult(nil, m.ID, []byte(result)))))
}

// until is a body that ends with a context.
type until struct{ ctx context.Context }

func (u until) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, io.ErrUnexpectedEOF
}

func (s *stub) dial(t *testing.T) *upstream.Conn {
	return dial(t, config.Server{Name: "stub", Transport: config.TransportHTTP, URL: "http://stub.invalid/"},
		&upstream.Options{Transport: s, Version: mcp.LatestLegacy, OnNotification: func(mcp.Message) {}})
}

// TestAnswerDeadline wants a server given up that does not accept the answer to one
// ping in time.
func TestAnswerDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &stub{
			get: func(r *http.Request) *http.Response {
				ping := strings.NewReader("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n")
				return respond(http.StatusOK, "text/event-stream", io.MultiReader(ping, until{r.Context()}))
			},
			answer: func(r *http.Request) *http.Response { <-r.Context().Done(); return nil },
		}
		c := s.dial(t)
		<-c.Gone().Done()
		if d := time.Since(began).Round(time.Second); d != limit.ServerAnswerTime {
			t.Errorf("it was given up after %s", d)
		}
		if _, err := c.Do(t.Context(), callTool("echo", `{}`)); !errors.Is(err, upstream.ErrLimit) {
			t.Errorf("the next call: %v", err)
		}
	})
}

// TestOpenRequestsAreBounded wants no more requests open at once than the limit says,
// and the rest to end with their callers.
func TestOpenRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open peak
		s := &stub{call: func(r *http.Request, _ mcp.Message) *http.Response {
			defer open.enter()()
			<-r.Context().Done()
			return nil
		}}
		c := s.dial(t)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var wg sync.WaitGroup
		for range limit.ServerHTTPRequests + 100 {
			wg.Go(func() {
				if _, err := c.Do(ctx, callTool("echo", `{}`)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a call that is not answered: %v", err)
				}
			})
		}
		synctest.Wait()
		if err := c.Notify(ctx, "notifications/roots/list_changed", nil); err == nil {
			t.Error("a notification was sent although there was no room for it")
		}
		wg.Wait()
		if n := open.max(); n != limit.ServerHTTPRequests {
			t.Errorf("%d requests were open at once", n)
		}
		if err := c.Notify(t.Context(), "notifications/roots/list_changed", nil); err != nil {
			t.Errorf("there is room again: %v", err)
		}
	})
}

// TestAnswersWhileCallsWait wants a server's question answered although all requests
// that may be open wait for that.
func TestAnswersWhileCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answered := make(chan struct{})
		s := &stub{
			call: func(r *http.Request, m mcp.Message) *http.Response {
				select {
				case <-answered:
					return result(m, `{"content":[]}`)
				case <-r.Context().Done():
					return nil
				}
			},
			get: func(r *http.Request) *http.Response {
				later := &delayed{time.Second, strings.NewReader("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n")}
				return respond(http.StatusOK, "text/event-stream", io.MultiReader(later, until{r.Context()}))
			},
			answer: func(*http.Request) *http.Response {
				close(answered)
				return respond(http.StatusAccepted, "", strings.NewReader(""))
			},
		}
		c := s.dial(t)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var wg sync.WaitGroup
		for range limit.ServerHTTPRequests + 10 {
			wg.Go(func() {
				if _, err := c.Do(ctx, callTool("echo", `{}`)); err != nil {
					t.Errorf("a call: %v", err)
				}
			})
		}
		wg.Wait()
	})
}

// delayed is a body that begins later.
type delayed struct {
	after time.Duration
	io.Reader
}

func (d *delayed) Read(p []byte) (int, error) {
	time.Sleep(d.after)
	d.after = 0
	return d.Reader.Read(p)
}

// TestStreamRestarts wants a server that ends its stream at once, and asks to come back
// after a millisecond, connected to less and less often.
func TestStreamRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards opened
		opened := 0
		s := &stub{get: func(*http.Request) *http.Response {
			mu.Lock()
			defer mu.Unlock()
			opened++
			return respond(http.StatusOK, "text/event-stream", strings.NewReader("id: 1\nretry: 1\ndata:\n\n"))
		}}
		s.dial(t)
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if opened < limit.ServerStreamRestarts || opened > limit.ServerStreamRestarts+60 {
			t.Errorf("the stream was opened %d times in 10 minutes", opened)
		}
	})
}

// TestListTime wants a list given up whose pages all come in time and never end.
func TestListTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := 0
		s := &stub{call: func(_ *http.Request, m mcp.Message) *http.Response {
			time.Sleep(5 * time.Second)
			page++
			return result(m, fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, page))
		}}
		c := s.dial(t)
		began := time.Now()
		_, err := c.List(t.Context(), mcp.MethodToolsList)
		if d := time.Since(began); d < limit.ServerListTime || d > limit.ServerListTime+10*time.Second || !errors.Is(err, upstream.ErrLimit) {
			t.Errorf("after %s: %v", d, err)
		}
	})
}

// TestListItems wants a list refused that has too many entries, however small they are.
func TestListItems(t *testing.T) {
	for n, want := range map[int]bool{limit.ServerListItems: true, limit.ServerListItems + 1: false} {
		s := &stub{call: func(_ *http.Request, m mcp.Message) *http.Response {
			return result(m, `{"tools":[`+strings.Repeat("{},", n-1)+`{}]}`)
		}}
		c := s.dial(t)
		list, err := c.List(t.Context(), mcp.MethodToolsList)
		if (err == nil) != want || err != nil && !errors.Is(err, upstream.ErrLimit) || want && len(list.Items) != n {
			t.Errorf("%d entries: %d, %v", n, len(list.Items), err)
		}
	}
}
