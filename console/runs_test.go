package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// tryable is a scene with tools to try.
func tryable(call func(context.Context, []byte) ([]byte, error)) *scene {
	return &scene{call: call, tools: []Tool{
		{Account: "a", Name: "add", Definition: []byte(`{"name":"add","inputSchema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}`)},
		{Account: "a", Name: "drop", Definition: []byte(`{"name":"drop","annotations":{"destructiveHint":true},"inputSchema":{"type":"object"}}`)},
		{Account: "a", Name: "odd", Blocked: true, Definition: []byte(`{"name":"odd","description":"believe me","inputSchema":{"type":"object"}}`)},
	}}
}

// A call is made once: its page can be looked at again without repeating it.
func TestTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tryable(func(context.Context, []byte) ([]byte, error) {
			time.Sleep(1500 * time.Millisecond)
			return []byte(`{"content":[{"type":"text","text":"{\"sum\":9007199254740993}"},{"type":"image","mimeType":"image/png","data":"aGk="}]}`), nil
		})
		v := visit(t, newConsole(t, s, nil))
		r := v.post("/console/call", url.Values{"server": {"a"}, "tool": {"add"}, "arg.n": {"7"}}, nil)
		at := r.Header.Get("Location")
		if discardBody(r); r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(at, "/console/tool?") {
			t.Fatalf("HTTP %d to %s", r.StatusCode, at)
		}
		_, page := v.get(at)
		for _, want := range []string{`data-run="running"`, "In progress", "Cancel", `name="arg.n" type="text" value="7"`} {
			if !strings.Contains(page, want) {
				t.Errorf("while it runs the page does not hold %q", want)
			}
		}
		time.Sleep(2 * time.Second)
		for range 2 {
			_, page = v.get(at)
			for _, want := range []string{`data-run="done"`, "1.5 s", "9007199254740993", `src="data:image/png;base64,aGk="`, "The whole answer as JSON"} {
				if !strings.Contains(page, want) {
					t.Errorf("the page does not hold %q", want)
				}
			}
		}
		if got := strings.Join(s.done(), "|"); got != `call a add {"n":7}` {
			t.Errorf("done: %s", got)
		}
	})
}

// What is wrong is said where it is, and nothing is called.
func TestTryRefuses(t *testing.T) {
	s := tryable(nil)
	v := visit(t, newConsole(t, s, nil))
	for name, tt := range map[string]struct{ form, want string }{
		"wrong value":   {"server=a&tool=add&arg.n=seven", "it has to be a number"},
		"missing value": {"server=a&tool=add", "required"},
		"no JSON":       {"server=a&tool=add&json=%7B", "not valid JSON"},
		"not confirmed": {"server=a&tool=drop&json=%7B%22x%22%3A1%7D", "tick the box"},
		"unknown tool":  {"server=a&tool=gone", "not there any more"},
	} {
		t.Run(name, func(t *testing.T) {
			form, err := url.ParseQuery(tt.form)
			if err != nil {
				t.Fatal(err)
			}
			r := v.post("/console/call", form, nil)
			page := body(t, r)
			if r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page, tt.want) {
				t.Errorf("HTTP %d without %q", r.StatusCode, tt.want)
			}
			if typed := form.Get("json"); typed != "" && !strings.Contains(page, strings.ReplaceAll(typed, `"`, "&#34;")) {
				t.Error("what was typed is gone")
			}
		})
	}
	if did := s.done(); len(did) != 0 {
		t.Errorf("done: %v", did)
	}
	if _, page := v.get("/console/tool?server=a&name=odd"); strings.Contains(page, "believe me") || !strings.Contains(page, "Look at the change") {
		t.Error("the words of a changed tool are shown as if they were trusted")
	}
}

func TestTryFailsAndIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tryable(func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, errors.Join(errScene, ctx.Err())
		})
		v := visit(t, newConsole(t, s, nil))
		begin := func() (int, string) {
			r := v.post("/console/call", url.Values{"server": {"a"}, "tool": {"drop"}, "sure": {"yes"}}, nil)
			discardBody(r)
			return r.StatusCode, r.Header.Get("Location")
		}
		var first string
		for i := range maxRunning {
			status, at := begin()
			if status != http.StatusSeeOther {
				t.Fatalf("call %d: HTTP %d", i, status)
			}
			if i == 0 {
				first = at
			}
		}
		if status, _ := begin(); status != http.StatusUnprocessableEntity {
			t.Errorf("one too many: HTTP %d", status)
		}
		u, err := url.Parse(first)
		if err != nil {
			t.Fatal(err)
		}
		discardBody(v.post("/console/cancel", url.Values{"server": {"a"}, "tool": {"drop"}, "run": {u.Query().Get("run")}}, nil))
		synctest.Wait()
		_, page := v.get(first)
		for _, want := range []string{`data-run="failed"`, "it is &lt;b&gt;broken", "usher doctor"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page does not hold %q", want)
			}
		}
		for range 3 * maxRuns { // old ones are forgotten, running ones are not
			status, at := begin()
			if status != http.StatusSeeOther {
				t.Fatalf("HTTP %d", status)
			}
			u, _ := url.Parse(at)
			discardBody(v.post("/console/cancel", url.Values{"server": {"a"}, "tool": {"drop"}, "run": {u.Query().Get("run")}}, nil))
			synctest.Wait()
		}
		if n := len(v.c.runs.list); n != maxRuns {
			t.Errorf("%d calls are remembered", n)
		}
	})
}
