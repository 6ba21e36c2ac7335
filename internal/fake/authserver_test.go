package fake

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// token makes one token request and returns its answer.
func token(t *testing.T, s *AuthServer, form url.Values) map[string]string {
	t.Helper()
	rec := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, s.Issuer()+"/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	s.Handler().ServeHTTP(rec, r)
	var raw map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &raw); err != nil {
		t.Fatalf("HTTP %d: %v", rec.Code, err)
	}
	out := map[string]string{}
	for k, v := range raw {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}

// logIn goes through the code flow by hand.
func logIn(t *testing.T, s *AuthServer) map[string]string {
	t.Helper()
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {"c"}, "redirect_uri": {"http://127.0.0.1:1/cb"}, "state": {"s"}, "scope": {"a b"},
		"code_challenge": {rawURL.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	back, err := s.Consent(t.Context(), s.Issuer()+"/authorize?"+q.Encode())
	if err != nil || back.Query().Get("iss") != s.Issuer() {
		t.Fatalf("%v, %v", back, err)
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "client_id": {"c"},
		"redirect_uri": {"http://127.0.0.1:1/cb"}, "code_verifier": {"wrong" + verifier},
	}
	if got := token(t, s, form); got["error"] != "invalid_grant" {
		t.Errorf("a wrong verifier: %v", got)
	}
	form.Set("code_verifier", verifier)
	first := token(t, s, form)
	if got := token(t, s, form); got["error"] != "invalid_grant" {
		t.Errorf("a code used twice: %v", got)
	}
	return first
}

func newTestAuth(o *AuthOptions) *AuthServer {
	o.Clients = []AuthClient{{ID: "c"}}
	s := NewAuth(o)
	s.Serve("https://as.example")
	return s
}

func refreshForm(refresh string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "client_id": {"c"}}
}

// The reuse of a rotated refresh token ends the grant; within the grace period it
// does not.
// A sweep for secrets is worth what its pattern finds.
func TestSecrets(t *testing.T) {
	s := newTestAuth(&AuthOptions{Switches: []string{"register-secret"}})
	answer := logIn(t, s)
	for _, name := range []string{"access_token", "refresh_token"} {
		if got := Secrets([]byte("x=" + answer[name] + "&y")); len(got) != 1 || string(got[0]) != answer[name] {
			t.Errorf("%s is not found in a text: %q", name, got)
		}
	}
	if got := Secrets([]byte("at-home code-review rt-1 secret-santa")); got != nil {
		t.Errorf("found %q", got)
	}
}

func TestAuthRotation(t *testing.T) {
	for _, grace := range []time.Duration{0, time.Minute} {
		s := newTestAuth(&AuthOptions{Grace: grace})
		one := logIn(t, s)
		two := token(t, s, refreshForm(one["refresh_token"]))
		if two["access_token"] == "" || two["refresh_token"] == one["refresh_token"] {
			t.Fatalf("refresh: %v", two)
		}
		again := token(t, s, refreshForm(one["refresh_token"]))
		if (again["error"] == "invalid_grant") != (grace == 0) {
			t.Errorf("grace %v: reuse answered %v", grace, again)
		}
		if last := token(t, s, refreshForm(two["refresh_token"])); (last["error"] == "invalid_grant") != (grace == 0) {
			t.Errorf("grace %v: after the reuse: %v", grace, last)
		}
	}
}

func TestAuthProtect(t *testing.T) {
	s := newTestAuth(&AuthOptions{})
	h := s.Protect(&Protected{Resource: "https://mcp.example/mcp", Need: func(*http.Request) []string { return []string{"b"} }},
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	status := func(bearer string) (int, string) {
		rec := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "https://mcp.example/mcp", nil)
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		h.ServeHTTP(rec, r)
		return rec.Code, rec.Header().Get("WWW-Authenticate")
	}
	if code, challenge := status(""); code != 401 || !strings.Contains(challenge, "oauth-protected-resource/mcp") {
		t.Errorf("without a token: %d %s", code, challenge)
	}
	if code, _ := status("foreign"); code != 401 {
		t.Errorf("with a foreign token: %d", code)
	}
	access := logIn(t, s)["access_token"]
	if code, _ := status(access); code != 200 {
		t.Errorf("with a good token: %d", code)
	}
	s.Set("narrow=a")
	if code, challenge := status(logIn(t, s)["access_token"]); code != 403 || !strings.Contains(challenge, `scope="b"`) {
		t.Errorf("with a narrow token: %d %s", code, challenge)
	}
	s.Expire()
	if code, _ := status(access); code != 401 {
		t.Errorf("with an expired token: %d", code)
	}
	details := map[string]int{}
	for _, e := range s.Requests(EventResource, "") {
		details[e.Detail]++
	}
	if details["none"] != 1 || details["foreign"] != 1 || details["ok"] != 1 || details["scope"] != 1 || details["expired"] != 1 {
		t.Errorf("ledger %v", details)
	}
}

func TestAuthSwitches(t *testing.T) {
	seen := map[string]bool{}
	for _, i := range AuthSwitches() {
		if seen[i.Name] || i.Doc == "" {
			t.Errorf("switch %q stands twice or is not documented", i.Name)
		}
		seen[i.Name] = true
		if sw, err := parseAuthSwitch(i.Name + "=v;on=refresh_token;after=1;times=2"); err != nil || sw.Value != "v" || sw.Times != 2 || sw.On[0] != "refresh_token" {
			t.Errorf("%s: %+v, %v", i.Name, sw, err)
		}
	}
	for _, text := range []string{"nonsense", "deny;x=1", "deny;times=x"} {
		if _, err := parseAuthSwitch(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
