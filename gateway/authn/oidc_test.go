package authn

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/gateway/authn/authntest"
)

func TestOAuth(t *testing.T) {
	i, stranger := authntest.NewIssuer(t), authntest.NewIssuer(t)
	transport := &http.Transport{DisableKeepAlives: true}
	auth, err := NewOIDC(OIDCOptions{
		Issuer: i.URL, URL: "https://usher.example.com/", Scopes: []string{"mcp", "tools"}, Audiences: []string{"legacy-aud"},
		Client: &http.Client{Transport: transport},
	})
	if err != nil {
		t.Fatal(err)
	}
	claims := func(change map[string]any) map[string]any {
		c := map[string]any{
			"iss": i.URL, "aud": "https://usher.example.com/mcp", "sub": "ada", "scope": "tools mcp other",
			"exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		}
		for k, v := range change {
			c[k] = v
			if v == nil {
				delete(c, k)
			}
		}
		return c
	}
	for _, tt := range []struct {
		name   string
		token  string
		status int    // 0: let in
		error  string // in the challenge
	}{
		{"all is well", i.Token(t, "RS256", claims(nil)), 0, ""},
		{"audience is the gateway", i.Token(t, "RS256", claims(map[string]any{"aud": []string{"x", "https://usher.example.com"}})), 0, ""},
		{"audience with a slash", i.Token(t, "RS256", claims(map[string]any{"aud": "https://usher.example.com/"})), 0, ""},
		{"another audience that was configured", i.Token(t, "RS256", claims(map[string]any{"aud": "legacy-aud"})), 0, ""},
		{"scopes as a list", i.Token(t, "RS256", claims(map[string]any{"scope": nil, "scp": []string{"mcp", "tools"}})), 0, ""},
		{"another endpoint's audience", i.Token(t, "RS256", claims(map[string]any{"aud": "https://usher.example.com/servers/x/mcp"})), 401, "invalid_token"},
		{"another audience", i.Token(t, "RS256", claims(map[string]any{"aud": "https://other.example.com/mcp"})), 401, "invalid_token"},
		{"no audience", i.Token(t, "RS256", claims(map[string]any{"aud": nil})), 401, "invalid_token"},
		{"too old", i.Token(t, "RS256", claims(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()})), 401, "invalid_token"},
		{"not yet", i.Token(t, "RS256", claims(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()})), 401, "invalid_token"},
		{"another issuer", stranger.Token(t, "RS256", claims(map[string]any{"iss": stranger.URL})), 401, "invalid_token"},
		{"another issuer's key", stranger.Token(t, "RS256", claims(nil)), 401, "invalid_token"},
		{"no signature", i.Token(t, "none", claims(nil)), 401, "invalid_token"},
		{"no subject", i.Token(t, "RS256", claims(map[string]any{"sub": nil})), 401, "invalid_token"},
		{"subject with a line break", i.Token(t, "RS256", claims(map[string]any{"sub": "a\nb"})), 401, "invalid_token"},
		{"a scope is missing", i.Token(t, "RS256", claims(map[string]any{"scope": "mcp"})), 403, "insufficient_scope"},
		{"no scopes", i.Token(t, "RS256", claims(map[string]any{"scope": nil})), 403, "insufficient_scope"},
		{"no JWT", "abc", 401, "invalid_token"},
		{"nothing", "", 401, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			authorization := ""
			if tt.token != "" {
				authorization = "Bearer " + tt.token
			}
			id, err := authenticate(t, auth, authorization)
			if tt.status == 0 {
				if err != nil || id.Principal != i.URL+"#ada" {
					t.Errorf("%+v, %v", id, err)
				}
				return
			}
			var no *RefusedError
			if !errors.As(err, &no) || no.Status != tt.status {
				t.Fatalf("got %v", err)
			}
			const where = `Bearer resource_metadata="https://usher.example.com/.well-known/oauth-protected-resource/mcp"`
			if !strings.HasPrefix(no.Challenge, where) || !strings.Contains(no.Challenge, `scope="mcp tools"`) ||
				tt.error != "" && !strings.Contains(no.Challenge, `error="`+tt.error+`"`) || tt.error == "" && strings.Contains(no.Challenge, "error") {
				t.Errorf("challenge %s", no.Challenge)
			}
		})
	}
}

// An issuer that does not answer is a failure of ours, and not asked all the time.
func TestOAuthIssuerDown(t *testing.T) {
	i := authntest.NewIssuer(t)
	token := i.Token(t, "RS256", map[string]any{"iss": i.URL, "aud": "https://u.example.com", "sub": "a", "exp": time.Now().Add(time.Hour).Unix()})
	asked := 0
	down := true
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if asked++; down {
			return nil, errors.New("down")
		}
		return (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	})}
	auth, err := NewOIDC(OIDCOptions{Issuer: i.URL, URL: "https://u.example.com", Client: client})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var refused *RefusedError
		if _, err := authenticate(t, auth, "Bearer "+token); err == nil || errors.As(err, &refused) {
			t.Errorf("while the issuer is down: %v", err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	down, auth.failed = false, time.Time{}
	if _, err := authenticate(t, auth, "Bearer "+token); err != nil {
		t.Errorf("after it came back: %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
