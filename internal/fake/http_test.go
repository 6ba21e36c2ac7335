package fake

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// post sends one message as a careful client does and returns status, headers and
// body; a broken body ends in "error: …".
func post(t *testing.T, hc *http.Client, url, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	res, err := open(t.Context(), hc, url, body, header...)
	if err != nil {
		return 0, nil, "error: " + err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 10<<20))
	if err != nil {
		text = append(text, "error: "+err.Error()...)
	}
	return res.StatusCode, res.Header, string(text)
}

func open(ctx context.Context, hc *http.Client, url, body string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if _, modern := jsonx.Path([]byte(body), "params", "_meta", mcp.MetaVersion); modern {
		req.Header.Set(wire.HeaderVersion, mcp.V20260728)
		req.Header.Set(wire.HeaderMethod, jsonx.GetText([]byte(body), "method"))
		params, _ := jsonx.Get([]byte(body), "params")
		if name := jsonx.GetText(params, "name"); name != "" {
			req.Header.Set(wire.HeaderName, wire.EncodeHeader(name))
		}
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return hc.Do(req)
}

// start initialises a legacy session.
func start(t *testing.T, hc *http.Client, url string) string {
	t.Helper()
	status, h, body := post(t, hc, url, initLine)
	if status != http.StatusOK || !strings.Contains(body, `"protocolVersion":"2025-11-25"`) {
		t.Fatalf("initialize = %d %s", status, body)
	}
	return h.Get(wire.HeaderSession)
}

func TestModernStatuses(t *testing.T) {
	url, hc := serveHTTP(t, New(nil))
	region := strings.NewReplacer(`"echo"`, `"region"`, `{"n":9007199254740993}`, `{"region":"ż","shard":7}`).Replace(echoCall)
	for _, tt := range []struct {
		name, body string
		header     []string
		status     int
		want       string
	}{
		{name: "discover", body: discover, status: 200, want: `"supportedVersions"`},
		{name: "call", body: echoCall, status: 200, want: okEcho},
		{name: "unknown method", body: strings.Replace(discover, "server/discover", "no/such", 1), status: 404, want: `-32601`},
		{name: "removed method", body: strings.Replace(discover, "server/discover", "ping", 1), status: 404, want: `-32601`},
		{name: "unknown tool", body: strings.Replace(echoCall, `"echo"`, `"nope"`, 1), status: 200, want: `-32602`},
		{name: "version nobody speaks", body: strings.Replace(discover, "2026-07-28", "2099-01-01", 1), header: []string{wire.HeaderVersion, "2099-01-01"}, status: 400, want: `"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28",`},
		{name: "header without meta", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, header: []string{wire.HeaderVersion, "2026-07-28"}, status: 400, want: `-32602`},
		{name: "no capabilities", body: strings.Replace(discover, "clientCapabilities", "x", 1), status: 400, want: `-32602`},
		{name: "other version header", body: discover, header: []string{wire.HeaderVersion, "2025-11-25"}, status: 400, want: `-32020`},
		{name: "other method header", body: discover, header: []string{wire.HeaderMethod, "tools/list"}, status: 400, want: `-32020`},
		{name: "other name header", body: echoCall, header: []string{wire.HeaderName, "add"}, status: 400, want: `-32020`},
		{name: "encoded name header", body: echoCall, header: []string{wire.HeaderName, "=?base64?ZWNobw==?="}, status: 200, want: okEcho},
		{name: "param headers missing", body: region, status: 400, want: `-32020`},
		{name: "param headers", body: region, header: []string{"Mcp-Param-Region", "=?base64?xbw=?=", "Mcp-Param-Shard", "7"}, status: 200, want: `"Mcp-Param-Shard":"7"`},
		{name: "no JSON", body: `{`, status: 400, want: `-32700`},
		{name: "batch", body: `[` + discover + `]`, status: 400, want: `-32600`},
		{name: "notification", body: cancelTwo, header: []string{wire.HeaderVersion, "2026-07-28"}, status: 202},
		{name: "bad accept", body: discover, header: []string{"Accept", "application/json"}, status: 406},
		{name: "bad content type", body: discover, header: []string{"Content-Type", "text/plain"}, status: 415},
		{name: "evil origin", body: discover, header: []string{"Origin", "http://evil.example"}, status: 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, _, body := post(t, hc, url+"/mcp", tt.body, tt.header...)
			if status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("%d %s, want %d %s", status, body, tt.status, tt.want)
			}
		})
	}
}

func TestModernRefusesGet(t *testing.T) {
	url, hc := serveHTTP(t, New(&Options{Versions: []string{mcp.V20260728}}))
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		req, _ := http.NewRequestWithContext(t.Context(), method, url+"/mcp", nil)
		res, err := hc.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s = %d", method, res.StatusCode)
		}
	}
	if status, _, body := post(t, hc, url+"/mcp", initLine); status != 400 || !strings.Contains(body, "-32022") {
		t.Errorf("initialize = %d %s", status, body)
	}
}

func TestLegacySession(t *testing.T) {
	s := New(&Options{Versions: []string{mcp.V20251125}})
	base, hc := serveHTTP(t, s)
	url := base + "/mcp"
	if status, _, body := post(t, hc, url, discover); status != 400 || strings.Contains(body, "jsonrpc") {
		t.Errorf("probe of a legacy server = %d %s", status, body)
	}
	if status, _, _ := post(t, hc, url, legacyCall); status != 400 {
		t.Errorf("call without a session = %d", status)
	}
	id := start(t, hc, url)
	if status, _, body := post(t, hc, url, legacyCall, wire.HeaderSession, id); status != 200 || strings.Contains(body, "resultType") {
		t.Errorf("call = %d %s", status, body)
	}
	if status, _, _ := post(t, hc, url, legacyCall, wire.HeaderSession, "stranger"); status != 404 {
		t.Errorf("unknown session = %d", status)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	req.Header.Set(wire.HeaderSession, id)
	res, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if status, _, _ := post(t, hc, url, legacyCall, wire.HeaderSession, id); status != 404 || res.StatusCode != 204 {
		t.Errorf("after DELETE (%d) a call = %d", res.StatusCode, status)
	}
}

// TestInputRequired plays both rounds of a modern question by hand.
func TestInputRequired(t *testing.T) {
	s := New(nil)
	base, hc := serveHTTP(t, s)
	ask := `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask","arguments":{},` + modernMe + `}}`
	_, _, body := post(t, hc, base+"/mcp", ask)
	result, _ := jsonx.Get([]byte(body), "result")
	state, _ := jsonx.Get(result, "requestState")
	if mcp.ResultType(result) != mcp.ResultInputRequired || len(state) < 10 {
		t.Fatalf("first round = %s", body)
	}
	retry := func(state string) string {
		p := jsonx.Apply([]byte(ask), jsonx.Edit{Key: "id", Value: []byte("4")})
		params, _ := jsonx.Get(p, "params")
		params = jsonx.Apply(params, jsonx.Edit{Key: "inputResponses", Value: []byte(`{"answer":{"action":"decline"}}`)}, jsonx.Edit{Key: "requestState", Value: []byte(state)})
		_, _, body := post(t, hc, base+"/mcp", string(jsonx.Set(p, "params", params)))
		return body
	}
	if body := retry(`"forged"`); !strings.Contains(body, "-32602") {
		t.Errorf("forged state = %s", body)
	}
	if body := retry(string(state)); !strings.Contains(body, `"structuredContent":{"action":"decline"}`) {
		t.Errorf("second round = %s", body)
	}
	sample := strings.Replace(ask, `"ask"`, `"sample"`, 1)
	if status, _, body := post(t, hc, base+"/mcp", sample); status != 400 || !strings.Contains(body, `-32021`) || !strings.Contains(body, `{"requiredCapabilities":{"sampling":{}}}`) {
		t.Errorf("sampling without the capability = %d %s", status, body)
	}
}

func TestListen(t *testing.T) {
	s := New(nil)
	base, hc := serveHTTP(t, s)
	res, err := open(testContext(t), hc, base+"/mcp", listenLine)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	events := wire.NewEvents(res.Body, 1<<20)
	var got []string
	next := func() {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(e.Data))
	}
	next()
	s.SetTools(nil)
	s.Touch("fake://readme") // not subscribed
	next()
	s.EndListens()
	next()
	const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":5}`
	want := []string{
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":5,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":5,"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1.0.0"}},"resultType":"complete"}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listen stream (-want +got):\n%s", diff)
	}
}

// TestCorpus sends every sample through both transports.
func TestCorpus(t *testing.T) {
	s := New(&Options{Tools: CorpusTools()})
	base, hc := serveHTTP(t, s)
	_, _, list := post(t, hc, base+"/mcp", modernList)
	for _, sample := range Corpus() {
		if err := jsonx.Valid(sample.Tool); err != nil {
			t.Errorf("%s: tool: %v", sample.Name, err)
		}
		if !strings.Contains(list, string(sample.Tool)) {
			t.Errorf("%s: the definition was changed", sample.Name)
		}
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":` + string(jsonx.Quote(sample.ToolName())) + `,` + modernMe + `}}`
		_, _, body := post(t, hc, base+"/mcp", call)
		if got, _ := jsonx.Get([]byte(body), "result"); string(got) != strings.TrimSpace(string(sample.Result)) {
			t.Errorf("%s: result %s", sample.Name, got)
		}
	}
}
