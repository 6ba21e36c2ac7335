package oauth

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

func TestReadLife(t *testing.T) {
	tests := map[string]time.Duration{
		`3600`: time.Hour, `"3600"`: time.Hour, `3600.0`: time.Hour, `1e3`: 1000 * time.Second, `" 60 "`: time.Minute, `59.5`: 59*time.Second + 500*time.Millisecond,
		`0`: 0, `-1`: 0, `"-1"`: 0, `null`: 0, `true`: 0, `""`: 0, `"soon"`: 0, `{}`: 0, `[3600]`: 0, `"0x10"`: 0, `"1_000"`: 0, `"NaN"`: 0, `"Inf"`: 0, ``: 0,
		`100000000000000000000`: maxLife, `9223372036854775807`: maxLife, `1e400`: maxLife, `"99999999999"`: maxLife, `31536001`: maxLife,
		`-1e400`: 0, `1e-400`: 0,
	}
	for raw, want := range tests {
		if got := readLife(json.RawMessage(raw)); got != want {
			t.Errorf("expires_in %s: %v, want %v", raw, got, want)
		}
	}
}

func TestErrorsDoNotRepeatSecrets(t *testing.T) {
	const secret = "rt-S3CRET-refresh-token-value"
	for name, words := range map[string]string{
		"plain":   "bad token " + secret,
		"escaped": "request was refresh_token=" + url.QueryEscape(secret+"+/="),
		"part":    "token starts with " + secret[:14],
		"opaque":  "trace " + strings.Repeat("ab12", 10),
	} {
		t.Run(name, func(t *testing.T) {
			resp := &http.Response{StatusCode: 400, Header: http.Header{}, Request: httptest.NewRequest("POST", "https://as.example/token", nil)}
			body, err := json.Marshal(map[string]string{"error": "invalid_grant", "error_description": words})
			if err != nil {
				t.Fatal(err)
			}
			_, err = readTokenResponse(resp, body, []string{secret, secret + "+/="})
			if !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "S3CRET") || strings.Contains(err.Error(), "ab12ab12") {
				t.Errorf("error %v", err)
			}
		})
	}
	resp := &http.Response{StatusCode: 400, Header: http.Header{}, Request: httptest.NewRequest("POST", "https://as.example/token", nil)}
	if _, err := readTokenResponse(resp, []byte(`{"error":"invalid_grant","error_description":"AADSTS70008: the token\u0000 has\nexpired"}`), nil); err == nil ||
		err.Error() != "as.example answered invalid_grant: AADSTS70008: the token  has expired" {
		t.Errorf("useful words are lost: %v", err)
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add(200, "application/json", `{"access_token":"a","token_type":"bearer","expires_in":"3600","scope":["a","b"]}`)
	f.Add(200, "application/json", `{"error":"invalid_grant"}`)
	f.Add(200, "application/x-www-form-urlencoded", "access_token=a&token_type=bearer")
	f.Add(200, "application/json", `{"access_token":"a","token_type":"dpop","expires_in":1e400}`)
	f.Add(200, "application/json", `{"access_token":"a`)
	f.Add(502, "text/html", "<html>")
	f.Add(302, "", "")
	const canary = "canary-5ecret-value"
	f.Add(400, "application/json", `{"error":"x","error_description":"canary-5ecret-value"}`)
	f.Fuzz(func(t *testing.T, status int, typ, body string) {
		resp := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {typ}}, Request: httptest.NewRequest("POST", "https://as.example/token", nil)}
		a, err := readTokenResponse(resp, []byte(body), []string{canary})
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("the error repeats a secret: %v", err)
		}
		if err == nil && (!headerSafe(a.Access.Reveal()) || a.Life < 0 || a.Life > maxLife) {
			t.Errorf("took %v for a token, life %v", a.Access.Reveal(), a.Life)
		}
	})
}

func FuzzEndpointAnswers(f *testing.F) {
	f.Add(201, `{"client_id":"x","client_secret":"y","client_secret_expires_at":0}`)
	f.Add(200, `{"device_code":"d","user_code":"u","verification_uri":"https://as.example/x","interval":5,"expires_in":600}`)
	f.Add(400, `{"error":"invalid_redirect_uri"}`)
	f.Add(200, `{"device_code":"d","user_code":"u","verification_uri":"javascript:x"}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		resp := &http.Response{StatusCode: status, Header: http.Header{}, Request: httptest.NewRequest("POST", "https://as.example/x", nil)}
		p := &Provider{Metadata: &ServerMetadata{TokenEndpoint: "https://as.example/token"}}
		if r, err := readRegistration(resp, []byte(body), p, Redirect{Class: ClassLoopback}); err == nil && r.Client.ID == "" {
			t.Error("a registration without a client")
		}
		if d, err := readDevice(resp, []byte(body), nil); err == nil {
			if _, err := PageURL("page", d.VerificationURI); err != nil || d.Interval <= 0 {
				t.Errorf("device %+v: %v", d.Device, err)
			}
		}
	})
}

// Tokens and clients that are too large are not kept, nor are large other members.
func TestTokensTooLarge(t *testing.T) {
	big := strings.Repeat("x", limit.IssuedTokenBytes+1)
	read := func(body string) (*TokenResponse, error) {
		resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Request: httptest.NewRequest("POST", "https://as.example/token", nil)}
		return readTokenResponse(resp, []byte(body), nil)
	}
	if _, err := read(`{"access_token":"` + big + `","token_type":"Bearer"}`); err == nil {
		t.Error("a large access token is taken")
	}
	a, err := read(`{"access_token":"a","refresh_token":"` + big + `","token_type":"Bearer","more":"` + big + `"}`)
	if err != nil || !a.Refresh.IsZero() || len(a.Extra) != 0 {
		t.Errorf("kept: %v, %d members, %v", !a.Refresh.IsZero(), len(a.Extra), err)
	}
	resp := &http.Response{StatusCode: 201, Header: http.Header{}, Request: httptest.NewRequest("POST", "https://as.example/register", nil)}
	p := &Provider{server: parseURL(t, serverURL), Metadata: &ServerMetadata{}}
	if _, err := readRegistration(resp, []byte(`{"client_id":"`+big+`"}`), p, Redirect{}); err == nil {
		t.Error("a large client id is taken")
	}
}
