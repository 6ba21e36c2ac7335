package fake

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
)

// httpCase is a switch and what a client gets for a POST.
type httpCase struct {
	sw     []string
	send   string // default: the echo call of the modern era
	status int    // default 200
	header []string
	want   []string
	never  []string
}

func httpCases() []httpCase {
	return []httpCase{
		{sw: []string{"sse"}, header: []string{"Content-Type", "text/event-stream"}, want: []string{"data: " + okEcho}},
		{sw: []string{"http-status=503", "retry-after=7"}, status: 503, header: []string{"Retry-After", "7", "Content-Type", "text/html"}, want: []string{"<html"}},
		{sw: []string{"http-status=403", `challenge=Bearer error="insufficient_scope"`, "body=json"}, status: 403, header: []string{"Www-Authenticate", `Bearer error="insufficient_scope"`}, want: []string{"invalid_token"}},
		{sw: []string{"http-status=500;on=tools/list"}, want: []string{okEcho}},
		{sw: []string{"unauthorized"}, status: 401, header: []string{"Www-Authenticate", `Bearer realm="fake"`}},
		{sw: []string{"redirect=http://127.0.0.1:1/x"}, status: 307, header: []string{"Location", "http://127.0.0.1:1/x"}},
		{sw: []string{"redirect-308=http://127.0.0.1:1/x"}, status: 308, header: []string{"Location", "http://127.0.0.1:1/x"}},
		{sw: []string{"html"}, header: []string{"Content-Type", "text/html; charset=utf-8"}, want: []string{"Sign in"}},
		{sw: []string{"wrong-content-type"}, header: []string{"Content-Type", "text/plain"}, want: []string{okEcho}},
		{sw: []string{"truncated-json"}, want: []string{`{"jsonrpc":"2.0","id":2`}, never: []string{"resultType", "error: "}},
		{sw: []string{"emptybody"}, status: 202},
		{sw: []string{"halfclose"}, want: []string{`{"jsonrpc":"2.0","id":2`, "error: "}, never: []string{"resultType"}},
		{sw: []string{"halfclose=headers"}, want: []string{"error: "}, never: []string{"jsonrpc"}},
		{sw: []string{"halfclose", "sse"}, want: []string{`{"jsonrpc":"2.0","id":2`, "error: "}, never: []string{"resultType"}},
		{sw: []string{"sse-drop"}, header: []string{"Content-Type", "text/event-stream"}, never: []string{"jsonrpc", "error: "}},
		{sw: []string{"sse-multiline"}, want: []string{"data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":2,"}},
		{sw: []string{"bigheader=4"}, header: []string{"X-Big", strings.Repeat("h", 4096)}, want: []string{okEcho}},
		{sw: []string{"dup"}, want: []string{okEcho, okEcho}},
		{sw: []string{"garbage"}, want: []string{"data: Server listening", okEcho}},
		{sw: []string{"bigline=2"}, want: []string{strings.Repeat("x", 1000)}},
		{sw: []string{"bigline=2", "sse"}, want: []string{"data: {", strings.Repeat("x", 1000)}},
		{sw: []string{"wrongid"}, want: []string{`"id":987654321`}},
		{sw: []string{"slowbyte=1"}, want: []string{okEcho}},
		{sw: []string{"listen-drop"}, send: listenLine, want: []string{"acknowledged"}, never: []string{`"result"`, "error: "}},
		{sw: []string{"crash-loop"}, status: -1, want: []string{"error: "}},
		{sw: []string{"latency=1"}, want: []string{okEcho}},
	}
}

func TestSwitchesOnHTTP(t *testing.T) {
	for _, tt := range httpCases() {
		t.Run(strings.Join(tt.sw, " "), func(t *testing.T) {
			url, hc := serveHTTP(t, New(&Options{Switches: tt.sw}))
			if tt.send == "" {
				tt.send = echoCall
			}
			status, h, body := post(t, hc, url+"/mcp", tt.send)
			if want := max(tt.status, 0); status != want && (tt.status != 0 || status != http.StatusOK) {
				t.Errorf("status %d, want %d", status, want)
			}
			for i := 0; i < len(tt.header); i += 2 {
				if got := h.Get(tt.header[i]); got != tt.header[i+1] {
					t.Errorf("%s: %q, want %q", tt.header[i], got, tt.header[i+1])
				}
			}
			checkText(t, body, tt.want, tt.never)
		})
	}
}

func TestSwitchHeals(t *testing.T) {
	s := New(&Options{Switches: []string{"http-status=429;after=1;times=2"}})
	url, hc := serveHTTP(t, s)
	var got []int
	for range 4 {
		status, _, _ := post(t, hc, url+"/mcp", echoCall)
		got = append(got, status)
	}
	s.Set("unauthorized=t0ken")
	status, _, _ := post(t, hc, url+"/mcp", echoCall)
	got = append(got, status)
	status, _, _ = post(t, hc, url+"/mcp", echoCall, "Authorization", "Bearer t0ken")
	got = append(got, status)
	s.Clear("unauthorized")
	status, _, _ = post(t, hc, url+"/mcp", echoCall)
	got = append(got, status)
	if want := [...]int{200, 429, 429, 200, 401, 200, 200}; [7]int(got) != want {
		t.Errorf("statuses %v, want %v", got, want)
	}
}

func TestGzipBomb(t *testing.T) {
	url, hc := serveHTTP(t, New(&Options{Switches: []string{"gzip=20"}}))
	res, err := open(t.Context(), hc, url+"/mcp", echoCall, "Accept-Encoding", "gzip")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	z, err := gzip.NewReader(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, z); err != nil || n < 20e6 {
		t.Errorf("unpacked %d bytes, %v", n, err)
	}
}

func TestHangs(t *testing.T) {
	for _, sw := range []string{"silent", "hang-after-headers"} {
		t.Run(sw, func(t *testing.T) {
			s := New(&Options{Switches: []string{sw}})
			url, hc := serveHTTP(t, s)
			ctx, cancel := context.WithCancel(testContext(t))
			done := make(chan string, 1)
			go func() {
				res, err := open(ctx, hc, url+"/mcp", echoCall)
				if err != nil {
					done <- err.Error()
					return
				}
				defer res.Body.Close()
				_, err = io.ReadAll(res.Body)
				done <- err.Error()
			}()
			if _, err := s.ledger.WaitFor(testContext(t), func(e Entry) bool { return e.Event == EventFault && e.Name == sw }); err != nil {
				t.Fatal(err)
			}
			cancel()
			if got := <-done; !strings.Contains(got, "canceled") {
				t.Errorf("ended with %q", got)
			}
		})
	}
}

func TestSessionSwitches(t *testing.T) {
	t.Run("session-lost", func(t *testing.T) {
		url, hc := serveHTTP(t, New(&Options{Switches: []string{"session-lost=1"}}))
		id := start(t, hc, url+"/mcp")
		first, _, _ := post(t, hc, url+"/mcp", legacyCall, wire.HeaderSession, id)
		second, _, _ := post(t, hc, url+"/mcp", legacyCall, wire.HeaderSession, id)
		if first != 200 || second != 404 {
			t.Errorf("%d then %d", first, second)
		}
	})
	t.Run("big-session-id", func(t *testing.T) {
		url, hc := serveHTTP(t, New(&Options{Switches: []string{"big-session-id=5"}}))
		if id := start(t, hc, url+"/mcp"); len(id) != 5<<10 {
			t.Errorf("the session id has %d bytes", len(id))
		}
	})
	t.Run("hold-answers", func(t *testing.T) {
		url, hc := serveHTTP(t, New(&Options{Switches: []string{"hold-answers"}}))
		id := start(t, hc, url+"/mcp")
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		res, err := open(ctx, hc, url+"/mcp", `{"jsonrpc":"2.0","id":1,"result":{}}`, wire.HeaderSession, id)
		if err == nil {
			res.Body.Close()
			t.Error("an answer was accepted")
		}
		if status, _, _ := post(t, hc, url+"/mcp", legacyCall, wire.HeaderSession, id); status != 200 {
			t.Errorf("a call after that: %d", status)
		}
	})
	t.Run("no-session", func(t *testing.T) {
		url, hc := serveHTTP(t, New(&Options{Switches: []string{"no-session"}}))
		if id := start(t, hc, url+"/mcp"); id != "" {
			t.Errorf("session %q", id)
		}
		if status, _, body := post(t, hc, url+"/mcp", legacyCall); status != 200 || !strings.Contains(body, `"result"`) {
			t.Errorf("%d %s", status, body)
		}
	})
	t.Run("no-get", func(t *testing.T) {
		url, hc := serveHTTP(t, New(&Options{Switches: []string{"no-get"}}))
		res := get(t, hc, url+"/mcp", start(t, hc, url+"/mcp"), "")
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("GET = %d", res.StatusCode)
		}
	})
}

func get(t *testing.T, hc *http.Client, url, session, lastEvent string) *http.Response {
	t.Helper()
	req, _ := http.NewRequestWithContext(testContext(t), http.MethodGet, url, nil)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set(wire.HeaderSession, session)
	if lastEvent != "" {
		req.Header.Set(wire.HeaderLastEvent, lastEvent)
	}
	res, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestStreams reads the beginning of streams that do not end.
func TestStreams(t *testing.T) {
	for _, tt := range []struct {
		sw, path string
		want     string
	}{
		{sw: "drip=1", want: ": still here\n\n: still here\n\n"},
		{sw: "endpoint=http://127.0.0.1:1/evil", path: "/sse", want: "event: endpoint\ndata: http://127.0.0.1:1/evil\n\n"},
		{sw: "sse", path: "/sse", want: "event: endpoint\ndata: /sse?sessionId=fake-1\n\n"},
	} {
		t.Run(tt.sw, func(t *testing.T) {
			url, hc := serveHTTP(t, New(&Options{Switches: []string{tt.sw}}))
			var res *http.Response
			var err error
			if tt.path == "" {
				res, err = open(testContext(t), hc, url+"/mcp", echoCall)
			} else {
				res = get(t, hc, url+tt.path, "", "")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got := make([]byte, len(tt.want))
			if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != tt.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestPushDrop(t *testing.T) {
	s := New(&Options{Switches: []string{"push-drop=1"}})
	url, hc := serveHTTP(t, s)
	res := get(t, hc, url+"/mcp", start(t, hc, url+"/mcp"), "")
	defer res.Body.Close()
	if _, err := s.ledger.WaitFor(testContext(t), func(e Entry) bool { return e.Event == EventListening }); err != nil {
		t.Fatal(err)
	}
	s.SetTools(nil)
	text, err := io.ReadAll(res.Body)
	if err != nil || strings.Count(string(text), "list_changed") != 1 {
		t.Errorf("%s, %v", text, err)
	}
}

func TestNoEndpoint(t *testing.T) {
	s := New(&Options{Switches: []string{"no-endpoint"}})
	url, hc := serveHTTP(t, s)
	res := get(t, hc, url+"/sse", "", "")
	defer res.Body.Close()
	s.Close()
	if text, _ := io.ReadAll(res.Body); len(text) > 0 {
		t.Errorf("%q", text)
	}
}

// TestResume loses an event stream before the answer and fetches the answer.
func TestResume(t *testing.T) {
	s := New(&Options{Switches: []string{"event-ids=25", "sse-drop=ids"}})
	base, hc := serveHTTP(t, s)
	url := base + "/mcp"
	id := start(t, hc, url)
	pay := `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"pay","arguments":{"id":"bill"}}}`
	res, err := open(testContext(t), hc, url, pay, wire.HeaderSession, id)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	events := wire.NewEvents(res.Body, 1<<20)
	first, err := events.Next()
	if err != nil || first.Retry != 25*time.Millisecond || !first.HasID {
		t.Fatalf("first event %+v, %v", first, err)
	}
	if e, err := events.Next(); err == nil {
		t.Fatalf("more than the first event: %s", e.Data)
	}
	again := get(t, hc, url, id, first.ID)
	defer again.Body.Close()
	answer, err := wire.NewEvents(again.Body, 1<<20).Next()
	if err != nil || !strings.Contains(string(answer.Data), `"paid bill"`) {
		t.Errorf("resumed: %s, %v", answer.Data, err)
	}
	if n := s.ledger.Executed("pay", "bill"); n != 1 {
		t.Errorf("executed %d times", n)
	}
}
