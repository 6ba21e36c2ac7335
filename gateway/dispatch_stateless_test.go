package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

const goodMeta = `"_meta":{"` + mcp.MetaVersion + `":"2026-07-28","` + mcp.MetaClientCaps + `":{}}`

// send posts a body to a gateway with headers given as pairs.
func send(t *testing.T, h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The codes and statuses that the revision names for each mistake.
func TestStatelessMistakes(t *testing.T) {
	tools := `{"tools":[{"name":"run","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},"dry":{"type":"boolean","x-mcp-header":"Dry"}}}}]}`
	view := &script{do: func(_ context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
		switch r.Method {
		case mcp.MethodToolsList:
			return []byte(tools), nil
		case mcp.MethodToolsCall, mcp.MethodResourcesRead, mcp.MethodPromptsGet:
			return []byte(`{"resultType":"complete"}`), nil
		}
		return nil, mcp.Errorf(mcp.CodeMethodNotFound, "no %s", r.Method)
	}}
	g := New(view, nil)
	defer g.Close()
	h := g.Handler()
	const v, m, n = wire.HeaderVersion, wire.HeaderMethod, wire.HeaderName
	const now = "2026-07-28"
	send(t, h, "POST", "/mcp", `{"jsonrpc":"2.0","id":0,"method":"tools/list","params":{`+goodMeta+`}}`, v, now, m, "tools/list")
	list := func(params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":` + params + `}`
	}
	call := func(name, args string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, name, args, goodMeta)
	}
	for _, tt := range []struct {
		name    string
		body    string
		headers []string
		status  int
		code    int64 // 0: a result
	}{
		{"no meta", list(`{}`), []string{v, now, m, "tools/list"}, 400, mcp.CodeInvalidParams},
		{"no params", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, []string{v, now, m, "tools/list"}, 400, mcp.CodeInvalidParams},
		{"meta is null", list(`{"_meta":null}`), []string{v, now, m, "tools/list"}, 400, mcp.CodeInvalidParams},
		{"meta is no object", list(`{"_meta":3}`), []string{v, now, m, "tools/list"}, 400, mcp.CodeInvalidParams},
		{"no version", list(`{"_meta":{"` + mcp.MetaClientCaps + `":{}}}`), []string{v, now, m, "tools/list"}, 400, mcp.CodeInvalidParams},
		{"no capabilities", list(`{"_meta":{"` + mcp.MetaVersion + `":"2026-07-28"}}`), []string{v, now, m, "tools/list"}, 400, mcp.CodeInvalidParams},
		{"capabilities are no object", list(`{"_meta":{"` + mcp.MetaVersion + `":"2026-07-28","` + mcp.MetaClientCaps + `":[]}}`), []string{v, now, m, "tools/list"}, 400, mcp.CodeInvalidParams},
		{"version twice", list(`{"_meta":{"` + mcp.MetaVersion + `":"2026-07-28","` + mcp.MetaVersion + `":"2026-07-28","` + mcp.MetaClientCaps + `":{}}}`), []string{v, now, m, "tools/list"}, 400, mcp.CodeInvalidParams},
		{"no version header", list(`{` + goodMeta + `}`), []string{m, "tools/list"}, 400, mcp.CodeHeaderMismatch},
		{"other version header", list(`{` + goodMeta + `}`), []string{v, "2025-11-25", m, "tools/list"}, 400, mcp.CodeHeaderMismatch},
		{"two version headers", list(`{` + goodMeta + `}`), []string{v, now, v, now, m, "tools/list"}, 400, mcp.CodeHeaderMismatch},
		{"unknown version", list(strings.ReplaceAll(`{`+goodMeta+`}`, now, "v999")), []string{v, "v999", m, "tools/list"}, 400, mcp.CodeUnsupportedVersion},
		{"older version in the new way", list(strings.ReplaceAll(`{`+goodMeta+`}`, now, "2025-11-25")), []string{v, "2025-11-25", m, "tools/list"}, 400, mcp.CodeUnsupportedVersion},
		{"no method header", list(`{` + goodMeta + `}`), []string{v, now}, 400, mcp.CodeHeaderMismatch},
		{"other method header", list(`{` + goodMeta + `}`), []string{v, now, m, "prompts/list"}, 400, mcp.CodeHeaderMismatch},
		{"method header in capitals", list(`{` + goodMeta + `}`), []string{v, now, m, "TOOLS/LIST"}, 400, mcp.CodeHeaderMismatch},
		{"two method headers", list(`{` + goodMeta + `}`), []string{v, now, m, "tools/list", m, "tools/call"}, 400, mcp.CodeHeaderMismatch},
		{"all is well", list(`{` + goodMeta + `}`), []string{v, now, m, "tools/list"}, 200, 0},
		{"removed method", `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{` + goodMeta + `}}`, []string{v, now, m, "initialize"}, 404, mcp.CodeMethodNotFound},
		{"removed ping", `{"jsonrpc":"2.0","id":7,"method":"ping","params":{` + goodMeta + `}}`, []string{v, now, m, "ping"}, 404, mcp.CodeMethodNotFound},
		{"removed setLevel", `{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"level":"info",` + goodMeta + `}}`, []string{v, now, m, "logging/setLevel"}, 404, mcp.CodeMethodNotFound},
		{"removed subscribe", `{"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":"x",` + goodMeta + `}}`, []string{v, now, m, "resources/subscribe"}, 404, mcp.CodeMethodNotFound},
		{"unknown method", `{"jsonrpc":"2.0","id":7,"method":"x/y","params":{` + goodMeta + `}}`, []string{v, now, m, "x/y"}, 404, mcp.CodeMethodNotFound},
		{"question to a server", `{"jsonrpc":"2.0","id":7,"method":"roots/list","params":{` + goodMeta + `}}`, []string{v, now, m, "roots/list"}, 404, mcp.CodeMethodNotFound},
		{"no name header", call("a", `{}`), []string{v, now, m, "tools/call"}, 400, mcp.CodeHeaderMismatch},
		{"other name header", call("a", `{}`), []string{v, now, m, "tools/call", n, "b"}, 400, mcp.CodeHeaderMismatch},
		{"name header", call("a", `{}`), []string{v, now, m, "tools/call", n, "a"}, 200, 0},
		{"encoded name header", call("größe", `{}`), []string{v, now, m, "tools/call", n, wire.EncodeHeader("größe")}, 200, 0},
		{"name header as it is", call("größe", `{}`), []string{v, now, m, "tools/call", n, "größe"}, 200, 0},
		{"broken encoding", call("a", `{}`), []string{v, now, m, "tools/call", n, "=?base64?YQ?="}, 400, mcp.CodeHeaderMismatch},
		{"uri header", `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///ä",` + goodMeta + `}}`, []string{v, now, m, "resources/read", n, wire.EncodeHeader("file:///ä")}, 200, 0},
		{"other uri header", `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///a",` + goodMeta + `}}`, []string{v, now, m, "resources/read", n, "file:///b"}, 400, mcp.CodeHeaderMismatch},
		{"param headers", call("run", `{"region":"eu","n":42,"dry":true}`), []string{v, now, m, "tools/call", n, "run", "Mcp-Param-Region", "eu", "Mcp-Param-N", "42", "Mcp-Param-Dry", "true"}, 200, 0},
		{"param header as a number", call("run", `{"n":42}`), []string{v, now, m, "tools/call", n, "run", "Mcp-Param-N", "42.0"}, 200, 0},
		{"param header missing", call("run", `{"region":"eu"}`), []string{v, now, m, "tools/call", n, "run"}, 400, mcp.CodeHeaderMismatch},
		{"param header too much", call("run", `{}`), []string{v, now, m, "tools/call", n, "run", "Mcp-Param-Region", "eu"}, 400, mcp.CodeHeaderMismatch},
		{"param is null", call("run", `{"region":null}`), []string{v, now, m, "tools/call", n, "run"}, 200, 0},
		{"other param header", call("run", `{"region":"eu"}`), []string{v, now, m, "tools/call", n, "run", "Mcp-Param-Region", "us"}, 400, mcp.CodeHeaderMismatch},
		{"other number", call("run", `{"n":42}`), []string{v, now, m, "tools/call", n, "run", "Mcp-Param-N", "43"}, 400, mcp.CodeHeaderMismatch},
		{"string that looks like the same number", call("run", `{"region":"1.0"}`), []string{v, now, m, "tools/call", n, "run", "Mcp-Param-Region", "1"}, 400, mcp.CodeHeaderMismatch},
		{"param header not encoded", call("run", `{"region":"ä"}`), []string{v, now, m, "tools/call", n, "run", "Mcp-Param-Region", "ä"}, 400, mcp.CodeHeaderMismatch},
		{"param header encoded", call("run", `{"region":"ä"}`), []string{v, now, m, "tools/call", n, "run", "Mcp-Param-Region", wire.EncodeHeader("ä")}, 200, 0},
		{"param header nobody asked for", call("a", `{}`), []string{v, now, m, "tools/call", n, "a", "Mcp-Param-Region", "eu"}, 200, 0},
		{"name twice", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","name":"b",` + goodMeta + `}}`, []string{v, now, m, "tools/call", n, "a"}, 400, mcp.CodeInvalidParams},
		{"lookalike of name", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","Name":"b",` + goodMeta + `}}`, []string{v, now, m, "tools/call", n, "a"}, 400, mcp.CodeInvalidParams},
		{"method twice", `{"jsonrpc":"2.0","id":7,"method":"tools/list","method":"tools/call","params":{` + goodMeta + `}}`, []string{v, now, m, "tools/list"}, 400, mcp.CodeInvalidRequest},
		{"lookalike of method", `{"jsonrpc":"2.0","id":7,"method":"tools/list","Method":"tools/call","params":{` + goodMeta + `}}`, []string{v, now, m, "tools/list"}, 400, mcp.CodeInvalidRequest},
		{"no JSON", `{"jsonrpc":`, []string{v, now}, 400, mcp.CodeParse},
		{"id is null", `{"jsonrpc":"2.0","id":null,"method":"tools/list","params":{` + goodMeta + `}}`, []string{v, now, m, "tools/list"}, 400, mcp.CodeInvalidRequest},
		{"response", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{v, now}, 400, mcp.CodeInvalidRequest},
		{"batch", `[` + list(`{`+goodMeta+`}`) + `]`, []string{v, now, m, "tools/list"}, 400, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := send(t, h, "POST", "/mcp", tt.body, tt.headers...)
			if w.Code != tt.status {
				t.Errorf("status %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			code := int64(0)
			if e, ok := jsonx.Get(w.Body.Bytes(), "error"); ok {
				code = mcp.ParseError(e).Code
			}
			if code != tt.code {
				t.Errorf("code %d, want %d: %s", code, tt.code, w.Body)
			}
		})
	}
	w := send(t, h, "POST", "/mcp", list(strings.ReplaceAll(`{`+goodMeta+`}`, now, "v999")), v, "v999", m, "tools/list")
	data, _ := jsonx.Path(w.Body.Bytes(), "error", "data")
	if want := `{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"v999"}`; string(data) != want {
		t.Errorf("data %s", data)
	}
}

func TestStatelessHasOnlyPost(t *testing.T) {
	g := New(&script{}, nil)
	defer g.Close()
	for _, method := range []string{"GET", "DELETE"} {
		w := send(t, g.Handler(), method, "/mcp", "", wire.HeaderVersion, mcp.Latest)
		if w.Code != 405 || w.Header().Get("Allow") != "POST" {
			t.Errorf("%s: %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
	if w := send(t, g.Handler(), "PUT", "/mcp", ""); w.Code != 405 {
		t.Errorf("PUT: %d", w.Code)
	}
	w := send(t, g.Handler(), "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, wire.HeaderVersion, mcp.Latest)
	if w.Code != 202 || w.Body.Len() != 0 {
		t.Errorf("notification: %d %s", w.Code, w.Body)
	}
}

func TestDiscover(t *testing.T) {
	g := New(&script{}, nil)
	defer g.Close()
	w := send(t, g.Handler(), "POST", "/mcp", `{"jsonrpc":"2.0","id":"a","method":"server/discover","params":{`+goodMeta+`}}`,
		wire.HeaderVersion, mcp.Latest, wire.HeaderMethod, mcp.MethodDiscover)
	want := `{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],` +
		`"capabilities":{"tools":{}},"instructions":"be kind","ttlMs":1000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}`
	if diff := cmp.Diff(want, w.Body.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What an older server cannot say is added at the end; its own bytes stay.
func TestComplete(t *testing.T) {
	for _, tt := range []struct{ method, result, want string }{
		{"tools/call", `{"content":[]}`, `{"content":[],"resultType":"complete"}`},
		{"tools/call", ` { "a" : 1 } `, ` { "a" : 1 ,"resultType":"complete"}`},
		{"tools/call", `{}`, `{"resultType":"complete"}`},
		{"tools/call", `{ }`, `{ "resultType":"complete"}`},
		{"tools/call", `{"resultType":"input_required","requestState":"x"}`, `{"resultType":"input_required","requestState":"x"}`},
		{"tools/call", `{"resultType":"task"}`, `{"resultType":"task"}`},
		{"tools/list", `{"tools":[]}`, `{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}`},
		{"tools/list", `{"tools":[],"resultType":"complete","ttlMs":5,"cacheScope":"public"}`, `{"tools":[],"resultType":"complete","ttlMs":5,"cacheScope":"public"}`},
		{"tools/list", `{"tools":[],"ttlMs":5}`, `{"tools":[],"ttlMs":5,"resultType":"complete","cacheScope":"private"}`},
		{"resources/read", `{"resultType":"input_required"}`, `{"resultType":"input_required"}`},
		{"resources/read", `{"contents":[]}`, `{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}`},
	} {
		a := complete(tt.method, []byte(strings.TrimRight(tt.result, " ")))
		got := a.append(nil, mcp.IntID(1))
		result, _ := jsonx.Get(got, "result")
		if string(result) != strings.TrimLeft(tt.want, " ") || jsonx.Valid(got) != nil {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.method, tt.result, result, tt.want)
		}
	}
	for _, bad := range []string{`null`, `[]`, `3`, `"x"`, `{"a":`} {
		if a := complete("tools/call", []byte(bad)); a.err == nil {
			t.Errorf("%s passes", bad)
		}
	}
}

func TestBodies(t *testing.T) {
	g := New(&script{}, &Options{MaxBody: 100})
	defer g.Close()
	big := strings.Repeat(" ", 101)
	if w := send(t, g.Handler(), "POST", "/mcp", big); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("known length: %d", w.Code)
	}
	r := httptest.NewRequest("POST", "/mcp", io.MultiReader(strings.NewReader(big)))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = -1
	w := httptest.NewRecorder()
	g.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("unknown length: %d", w.Code)
	}
}

func TestRoutes(t *testing.T) {
	g := New(emptyEndpoints{}, nil)
	defer g.Close()
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/": 404, "/mcp/": 404, "/servers//mcp": 404, "/servers/a/b/mcp": 404, "/servers/x/mcp": 404,
		"/profiles/x/mcp": 404, "/nothing/mcp": 404, authn.MetadataPath: 404,
	} {
		if w := send(t, g.Handler(), "GET", path, "", "Accept", ""); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	g.Drain()
	if w := send(t, g.Handler(), "GET", "/readyz", ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("draining: %d", w.Code)
	}
	if w := send(t, g.Handler(), "GET", "/healthz", ""); w.Code != 200 {
		t.Errorf("draining, health: %d", w.Code)
	}
}
