package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Answers to logins are taken from a session of this console only, with its Origin and
// its token; events need a session.
func TestLoginStreamIsGuarded(t *testing.T) {
	s := &scene{}
	c := newConsole(t, s, nil)
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	v, other, elsewhere := visit(t, c), visit(t, c), visit(t, newConsole(t, &scene{driver: &stage{}}, nil))
	send := func(method, path string, who *visitor, header ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader("http://127.0.0.1/callback?state=x&code=y\n"))
		if err != nil {
			t.Fatal(err)
		}
		if who != nil {
			r.AddCookie(who.cookie)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	const events, answers = "/console/login/events", "/console/login/answers"
	first := send("GET", events, v)
	discardBody(first)
	second := send("GET", events, other)
	discardBody(second)
	token, foreignToken := first.Header.Get(headerCSRF), second.Header.Get(headerCSRF)
	if first.StatusCode != http.StatusNotFound || token == "" || token == foreignToken {
		t.Fatalf("before the first login: HTTP %d, token %q", first.StatusCode, token)
	}
	early := send("POST", answers, v, "Origin", srv.URL, headerCSRF, token)
	discardBody(early)
	if early.StatusCode != http.StatusNotFound {
		t.Errorf("an answer before the first login: HTTP %d", early.StatusCode)
	}
	s.set(func(s *scene) { s.driver = &stage{} })
	for name, tt := range map[string]struct {
		method, path string
		who          *visitor
		header       []string
		want         int
	}{
		"events":                   {"GET", events, v, nil, 200},
		"events without a session": {"GET", events, nil, nil, 403},
		"events with a session of another principal's console":  {"GET", events, elsewhere, nil, 403},
		"events for a foreign page":                             {"GET", events, v, []string{"Origin", "https://evil.example"}, 403},
		"answers":                                               {"POST", answers, v, []string{"Origin", srv.URL, headerCSRF, token}, 200},
		"answers without a session":                             {"POST", answers, nil, []string{"Origin", srv.URL, headerCSRF, token}, 403},
		"answers with a session of another principal's console": {"POST", answers, elsewhere, []string{"Origin", srv.URL, headerCSRF, token}, 403},
		"answers of a foreign page":                             {"POST", answers, v, []string{"Origin", "https://evil.example", headerCSRF, token}, 403},
		"answers without an origin":                             {"POST", answers, v, []string{headerCSRF, token}, 403},
		"answers without a token":                               {"POST", answers, v, []string{"Origin", srv.URL}, 403},
		"answers with the token of another browser":             {"POST", answers, v, []string{"Origin", srv.URL, headerCSRF, foreignToken}, 403},
		"answers by GET":                                        {"GET", answers, v, []string{"Origin", srv.URL, headerCSRF, token}, 404},
	} {
		r := send(tt.method, tt.path, tt.who, tt.header...)
		if text := body(t, r); r.StatusCode != tt.want || tt.want == 200 && text != "events\n" && text != "input\n" {
			t.Errorf("%s: HTTP %d, %.80s", name, r.StatusCode, text)
		}
		if tt.want == 403 && r.Header.Get(headerCSRF) != "" {
			t.Errorf("%s: a refused client gets a token", name)
		}
	}
}
