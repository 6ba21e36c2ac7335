package auth

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/internal/limit"
)

// oddAnswer is an answer of a token endpoint and what it does to a grant.
type oddAnswer struct {
	name   string
	status int
	typ    string
	body   string
	// renewed: the answer is a success after all.
	renewed bool
	// requests is how often the server is asked for one expiry; 0 means once.
	requests int
	// ended: the grant is over.
	ended bool
}

const goodTokens = `"access_token":"at-odd","token_type":"Bearer"`

func oddAnswers() []oddAnswer {
	json200 := func(name, body string, renewed bool) oddAnswer {
		return oddAnswer{name: name, status: 200, typ: "application/json", body: body, renewed: renewed}
	}
	fail := func(name string, status int, typ, body string) oddAnswer {
		return oddAnswer{name: name, status: status, typ: typ, body: body}
	}
	tests := []oddAnswer{
		json200("no expires_in", `{`+goodTokens+`}`, true),
		json200("null expires_in", `{`+goodTokens+`,"expires_in":null}`, true),
		json200("string expires_in", `{`+goodTokens+`,"expires_in":"3600"}`, true),
		json200("float expires_in", `{`+goodTokens+`,"expires_in":3600.5}`, true),
		json200("exponent expires_in", `{`+goodTokens+`,"expires_in":1e3}`, true),
		json200("zero expires_in", `{`+goodTokens+`,"expires_in":0}`, true),
		json200("negative expires_in", `{`+goodTokens+`,"expires_in":-1}`, true),
		json200("huge expires_in", `{`+goodTokens+`,"expires_in":100000000000000000000}`, true),
		json200("boolean expires_in", `{`+goodTokens+`,"expires_in":true}`, true),
		json200("object expires_in", `{`+goodTokens+`,"expires_in":{"seconds":1}}`, true),
		json200("empty expires_in", `{`+goodTokens+`,"expires_in":""}`, true),
		json200("no token_type", `{"access_token":"at-odd","expires_in":3600}`, true),
		json200("lower case type", `{"access_token":"at-odd","token_type":"bearer","expires_in":3600}`, true),
		json200("scope as list", `{`+goodTokens+`,"scope":["a","b"]}`, true),
		json200("scope as number", `{`+goodTokens+`,"scope":7}`, true),
		json200("null refresh token", `{`+goodTokens+`,"refresh_token":null}`, true),
		json200("empty refresh token", `{`+goodTokens+`,"refresh_token":""}`, true),
		json200("refresh token as number", `{`+goodTokens+`,"refresh_token":12}`, true),
		json200("unknown fields", `{`+goodTokens+`,"ext":{"a":[1,2]}}`, true),
		json200("error beside tokens", `{`+goodTokens+`,"error":""}`, true),
		{name: "JSON as text", status: 200, typ: "text/plain", body: `{` + goodTokens + `}`, renewed: true},
		{name: "form", status: 200, typ: "application/x-www-form-urlencoded", body: "access_token=at-odd&token_type=bearer&expires_in=3600", renewed: true},
		{name: "form as text", status: 200, typ: "text/plain", body: "access_token=at-odd&token_type=bearer", renewed: true},
		{name: "created", status: 201, typ: "application/json", body: `{` + goodTokens + `}`, renewed: true},
		json200("no access token", `{"token_type":"Bearer","expires_in":3600}`, false),
		json200("access token as number", `{"access_token":7}`, false),
		json200("access token with line break", `{"access_token":"a\r\nX: y"}`, false),
		json200("access token with blank", `{"access_token":"a b"}`, false),
		json200("unknown token type", `{"access_token":"at-odd","token_type":"mac"}`, false),
		json200("bound token not asked for", `{"access_token":"at-odd","token_type":"DPoP"}`, false),
		json200("list", `[]`, false), json200("null", `null`, false), json200("string", `"at-odd"`, false), json200("empty object", `{}`, false),
		json200("error with 200", `{"ok":false,"error":"temporarily_unavailable"}`, false),
		fail("page", 200, "text/html", "<html>Sign in</html>"),
		fail("page with 400", 400, "text/html", "<html>Bad</html>"),
		fail("400 without body", 400, "", ""), fail("400 without code", 400, "application/json", `{"message":"no"}`),
		fail("401 without code", 401, "application/json", `{}`), fail("403 page", 403, "text/html", "<html>blocked by a firewall"),
		fail("404", 404, "text/plain", "not found"), fail("408", 408, "", ""), fail("429", 429, "application/json", `{"error":"slow_down"}`),
		fail("500", 500, "application/json", `{"error":"invalid_grant"}`), fail("502", 502, "text/html", "<html>"), fail("503", 503, "", ""), fail("504", 504, "", ""),
		fail("302", 302, "", ""), fail("307", 307, "", ""), fail("308", 308, "", ""),
		fail("204", 204, "", ""),
		fail("server_error", 400, "application/json", `{"error":"server_error"}`),
		fail("invalid_scope", 400, "application/json", `{"error":"invalid_scope"}`),
		fail("unknown code", 400, "application/json", `{"error":"consent_required"}`),
		fail("invalid_client", 401, "application/json", `{"error":"invalid_client"}`),
		fail("code that is no code", 400, "application/json", `{"error":"invalid grant: see <b>help</b>"}`),
		fail("too large", 200, "application/json", `{"pad":"`+strings.Repeat("x", limit.LoginDocument)+`"}`),
		{name: "invalid_grant", status: 400, typ: "application/json", body: `{"error":"invalid_grant"}`, requests: 2, ended: true},
		{name: "invalid_grant with 200", status: 200, typ: "application/json", body: `{"error":"invalid_grant"}`, requests: 2, ended: true},
		{name: "invalid_grant with 401", status: 401, typ: "application/json", body: `{"error":"invalid_grant"}`, requests: 2, ended: true},
		{name: "broken off", status: 200, typ: "application/json", body: `{"access_token":"at-o`, requests: 2},
		{name: "nothing", status: 200, typ: "application/json", body: ``, requests: 2},
	}
	for i := range tests {
		tests[i].requests = max(tests[i].requests, 1)
		if tests[i].name == "204" || tests[i].name == "too large" {
			tests[i].requests = 2 // the server may have acted
		}
	}
	return tests
}

// The grant survives every answer but a confirmed invalid_grant, and no answer
// makes more than one request for one expiry (a lost one may be asked for again).
func TestOddTokenAnswers(t *testing.T) {
	tests := oddAnswers()
	if len(tests) < 60 {
		t.Fatalf("only %d answers", len(tests))
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil, nil)
			w.login()
			before := w.grant()
			w.edit(func(g *grants.Grant) { g.Expires = time.Now().Add(-time.Second) })
			asked := 0
			w.as.Intercept("token", func(rw http.ResponseWriter, r *http.Request, _ http.Handler) {
				asked++
				if tt.status >= 300 && tt.status < 400 {
					rw.Header().Set("Location", "https://evil.example/token")
				}
				rw.Header().Set("Content-Type", tt.typ)
				rw.WriteHeader(tt.status)
				_, _ = rw.Write([]byte(tt.body))
			})
			for range 10 { // ten requests of an agent within one expiry
				req := httptest.NewRequest(http.MethodPost, mcpURL, nil)
				err := w.e.Authorize(t.Context(), w.a, &w.srv, req)
				if got := req.Header.Get("Authorization") == "Bearer at-odd"; got != tt.renewed {
					t.Fatalf("new token in use: %v, error %v", got, err)
				}
			}
			if asked != tt.requests {
				t.Errorf("the server was asked %d times, want %d", asked, tt.requests)
			}
			after := w.grant()
			if (after.Ended != nil) != tt.ended {
				t.Errorf("ended %v, want %v", after.Ended, tt.ended)
			}
			if !after.Refresh.Equal(before.Refresh.Secret) {
				t.Error("the refresh token is gone")
			}
			if changed := tt.renewed || tt.ended; changed == (after.Generation == before.Generation) {
				t.Errorf("generation %d after %d", after.Generation, before.Generation)
			}
			if w.net.reached("evil.example") > 0 {
				t.Error("the redirect was followed")
			}
		})
	}
}

// A rotated refresh token is kept even when the rest of the answer is no good.
func TestRotatedTokenOutOfABadAnswer(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	w.edit(func(g *grants.Grant) { g.Expires = time.Now().Add(-time.Second) })
	w.as.Intercept("token", func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write([]byte(`{"refresh_token":"rt-new"}`))
	})
	_ = w.call(t.Context())
	if got := w.grant().Refresh.Reveal(); got != "rt-new" {
		t.Errorf("refresh token %q", got)
	}
}
