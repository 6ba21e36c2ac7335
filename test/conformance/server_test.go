package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/wire"
)

// A failure that is known passes with a remark; when it is gone, that fails.
func TestExpect(t *testing.T) {
	failed := result{problems: []string{"FAILURE x"}}
	failed.expect("it rains")
	if !failed.ok() || verdict(failed) != "known" || strings.Join(remarks(failed), "") != "unscored by the suiteknown: it rains" {
		t.Errorf("%+v", failed)
	}
	passed := result{}
	passed.expect("it rains")
	if passed.ok() {
		t.Error("a reason that is out of date passes")
	}
	fresh := result{problems: []string{"FAILURE x"}}
	if fresh.expect(""); fresh.ok() {
		t.Error("a failure without a reason passes")
	}
}

func TestServerLegsHaveFloors(t *testing.T) {
	s := installed(t)
	f, err := readFloors()
	if err != nil {
		t.Fatal(err)
	}
	names, listed := map[string]bool{}, map[string][]scenario{}
	for _, l := range serverLegs(f, true) {
		if names[l.name()] {
			t.Errorf("two legs are named %s", l.name())
		}
		names[l.name()] = true
		if listed[l.revision] == nil {
			if listed[l.revision], err = s.scenarios(t.Context(), l.side, l.revision); err != nil {
				t.Fatal(err)
			}
		}
		there := map[string]bool{}
		for _, sc := range listed[l.revision] {
			there[sc.name] = true
			if _, ok := l.floors[sc.name]; !ok && !strings.HasPrefix(sc.name, noFixture) {
				t.Errorf("%s: %s has no floor", l.name(), sc.name)
			}
		}
		for name := range l.known {
			if !there[name] {
				t.Errorf("%s: there is no scenario %s", l.name(), name)
			}
		}
	}
}

// The shim changes names, in both directions and both forms, and nothing else.
func TestShim(t *testing.T) {
	var got *http.Request
	var body []byte
	stream := false
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		answer := `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"p__a","x":1},{"name":"login"}],"prompts":[{"name":"p__b"}]}}`
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			answer = ": hello\n\nevent: message\ndata: " + answer + "\n\n"
		} else {
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer behind.Close()
	base, stop, err := startShim(behind.URL+"/direct/mcp", "p__")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	post := func(method, text, name string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, base+"/mcp", bytes.NewReader([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(wire.HeaderName, name)
		r.Header.Set("Origin", base)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	const list = `{"tools":[{"name":"a","x":1},{"name":"login"}],"prompts":[{"name":"b"}]}`
	if out := post("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"name":"a"}}}`, "a"); !strings.Contains(out, list) {
		t.Errorf("got %s", out)
	}
	if want := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"p__a","arguments":{"name":"a"}}}`; string(body) != want {
		t.Errorf("sent %s", body)
	}
	if got.Header.Get(wire.HeaderName) != "p__a" || got.URL.Path != "/direct/mcp" || got.Header.Get("Origin") != behind.URL || "http://"+got.Host != behind.URL {
		t.Errorf("sent %s %s %v", got.Host, got.URL, got.Header)
	}
	post("POST", `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"b"}}}`, "")
	if !strings.Contains(string(body), `"name":"p__b"`) {
		t.Errorf("sent %s", body)
	}
	if post("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"login"}}`, "login"); strings.Contains(string(body), "p__") {
		t.Errorf("sent %s", body)
	}
	stream = true
	if out := post("DELETE", "", ""); !strings.HasPrefix(out, ": hello\n\nevent: message\ndata: ") || !strings.Contains(out, list) {
		t.Errorf("got %s", out)
	}
}
