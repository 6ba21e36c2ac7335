package gateway_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// agent is a raw client of the gateway, in either era.
type agent struct {
	t       *testing.T
	url     string
	caps    string // client capabilities
	token   string // bearer
	session string // set by initialize: then it is of the legacy protocol
	version string
	next    int
	http    *http.Client // default client
}

func newAgent(t *testing.T, url, version, caps string) *agent {
	t.Helper()
	a := &agent{t: t, url: url, version: version, caps: caps}
	if mcp.Stateless(version) {
		return a
	}
	resp, body := a.post(t.Context(), a.message("initialize", `{"protocolVersion":"`+version+`","capabilities":`+caps+`,"clientInfo":{"name":"t","version":"1"}}`), nil)
	if a.session = resp.Header.Get(wire.HeaderSession); a.session == "" {
		t.Fatalf("initialize: %d %s", resp.StatusCode, body)
	}
	if resp, body := a.post(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), nil); resp.StatusCode != http.StatusAccepted {
		t.Fatalf("initialized: %d %s", resp.StatusCode, body)
	}
	return a
}

// message is a request of the agent's era.
func (a *agent) message(method, params string) []byte {
	a.next++
	p := []byte(params)
	if mcp.Stateless(a.version) {
		p = wire.EditMeta(p, jsonx.Edit{Key: mcp.MetaVersion, Value: jsonx.Quote(a.version)},
			jsonx.Edit{Key: mcp.MetaClientCaps, Value: []byte(a.caps)})
	}
	return mcp.AppendRequest(nil, mcp.IntID(int64(a.next)), method, p)
}

// request is the HTTP request that carries a message.
func (a *agent) request(ctx context.Context, message []byte, more http.Header) *http.Request {
	a.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(message))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(wire.HeaderVersion, a.version)
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	if a.session != "" {
		r.Header.Set(wire.HeaderSession, a.session)
	}
	if m, err := mcp.Parse(message); err == nil && mcp.Stateless(a.version) && m.Kind() == mcp.KindRequest {
		r.Header.Set(wire.HeaderMethod, m.Method)
		if p, bad := mcp.ReadParams(m.Params); bad == nil {
			if name, ok := p.NameFor(m.Method); ok {
				r.Header.Set(wire.HeaderName, wire.EncodeHeader(name))
			}
		}
	}
	for k, v := range more {
		r.Header[k] = v
		if v == nil {
			delete(r.Header, k)
		}
	}
	return r
}

// post sends a message and returns the whole answer.
func (a *agent) post(ctx context.Context, message []byte, more http.Header) (*http.Response, []byte) {
	a.t.Helper()
	resp, err := cmp.Or(a.http, client).Do(a.request(ctx, message, more))
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp, body
}

// client keeps no connection for later, so that nothing is left behind.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// said is what came back for one request.
type said struct {
	status int
	before []mcp.Message // notifications and requests before the answer
	result []byte
	err    *mcp.Error
}

// do sends a request and reads the answer, be it JSON or a stream. Questions on the
// way are answered by ask.
func (a *agent) do(ctx context.Context, method, params string, ask func(mcp.Message) string) said {
	a.t.Helper()
	return a.read(ctx, a.request(ctx, a.message(method, params), nil), ask)
}

func (a *agent) read(ctx context.Context, r *http.Request, ask func(mcp.Message) string) said {
	a.t.Helper()
	resp, err := client.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	out := said{status: resp.StatusCode}
	next := a.messages(resp)
	for {
		m, ok := next()
		if !ok {
			return out
		}
		switch m.Kind() {
		case mcp.KindResponse:
			out.result = m.Result
			if m.Error != nil {
				out.err = mcp.ParseError(m.Error)
			}
			return out
		case mcp.KindRequest:
			out.before = append(out.before, m)
			answer := mcp.AppendResult(nil, m.ID, []byte(ask(m)))
			if resp, body := a.post(ctx, answer, nil); resp.StatusCode != http.StatusAccepted {
				a.t.Fatalf("answer: %d %s", resp.StatusCode, body)
			}
		default:
			out.before = append(out.before, m)
		}
	}
}

// messages reads a JSON text or a stream.
func (a *agent) messages(resp *http.Response) func() (mcp.Message, bool) {
	a.t.Helper()
	parse := func(data []byte) mcp.Message {
		m, err := mcp.Parse(data)
		if err != nil {
			a.t.Fatalf("%v: %s", err, data)
		}
		return m
	}
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		once := false
		return func() (mcp.Message, bool) {
			body, err := io.ReadAll(resp.Body)
			if err != nil || once || len(body) == 0 {
				return mcp.Message{}, false
			}
			once = true
			if body[0] != '{' {
				a.t.Fatalf("HTTP %d: %s", resp.StatusCode, body)
			}
			return parse(body), true
		}
	}
	if resp.Header.Get("X-Accel-Buffering") != "no" {
		a.t.Error("a stream without X-Accel-Buffering: no")
	}
	events := wire.NewEvents(resp.Body, 64<<20)
	return func() (mcp.Message, bool) {
		for {
			e, err := events.Next()
			if err != nil {
				return mcp.Message{}, false
			}
			if len(e.Data) > 0 {
				return parse(e.Data), true
			}
		}
	}
}

// call calls a tool and wants a result.
func (a *agent) call(ctx context.Context, tool, arguments string, ask func(mcp.Message) string) said {
	a.t.Helper()
	out := a.do(ctx, mcp.MethodToolsCall, fmt.Sprintf(`{"name":%s,"arguments":%s}`, jsonx.Quote(tool), arguments), ask)
	if out.err != nil || out.result == nil {
		a.t.Fatalf("call %s: HTTP %d, %v, result %s", tool, out.status, out.err, out.result)
	}
	return out
}

// text is the first text of a tool's result.
func text(t *testing.T, result []byte) string {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &r); err != nil || len(r.Content) == 0 {
		t.Fatalf("no content: %s (%v)", result, err)
	}
	return r.Content[0].Text
}
