package gateway

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// issuer is an OIDC issuer with one key.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"authorization_endpoint":%[1]q,"token_endpoint":%[1]q,"id_token_signing_alg_values_supported":["RS256"]}`, i.URL, i.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		e := big.NewInt(int64(key.E)).Bytes()
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","alg":"RS256","use":"sig","kid":"k","n":%q,"e":%q}]}`, encode(key.N.Bytes()), encode(e))
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token signs claims.
func (i *issuer) token(t *testing.T, alg string, claims map[string]any) string {
	t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := encode([]byte(`{"alg":"`+alg+`","kid":"k","typ":"at+jwt"}`)) + "." + encode(body)
	if alg == "none" {
		return text + "."
	}
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + encode(sig)
}

func TestOAuth(t *testing.T) {
	i, stranger := newIssuer(t), newIssuer(t)
	transport := &http.Transport{DisableKeepAlives: true}
	auth, err := NewOAuth(OAuthOptions{
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
		{"all is well", i.token(t, "RS256", claims(nil)), 0, ""},
		{"audience is the gateway", i.token(t, "RS256", claims(map[string]any{"aud": []string{"x", "https://usher.example.com"}})), 0, ""},
		{"audience with a slash", i.token(t, "RS256", claims(map[string]any{"aud": "https://usher.example.com/"})), 0, ""},
		{"another audience that was configured", i.token(t, "RS256", claims(map[string]any{"aud": "legacy-aud"})), 0, ""},
		{"scopes as a list", i.token(t, "RS256", claims(map[string]any{"scope": nil, "scp": []string{"mcp", "tools"}})), 0, ""},
		{"another endpoint's audience", i.token(t, "RS256", claims(map[string]any{"aud": "https://usher.example.com/servers/x/mcp"})), 401, "invalid_token"},
		{"another audience", i.token(t, "RS256", claims(map[string]any{"aud": "https://other.example.com/mcp"})), 401, "invalid_token"},
		{"no audience", i.token(t, "RS256", claims(map[string]any{"aud": nil})), 401, "invalid_token"},
		{"too old", i.token(t, "RS256", claims(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()})), 401, "invalid_token"},
		{"not yet", i.token(t, "RS256", claims(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()})), 401, "invalid_token"},
		{"another issuer", stranger.token(t, "RS256", claims(map[string]any{"iss": stranger.URL})), 401, "invalid_token"},
		{"another issuer's key", stranger.token(t, "RS256", claims(nil)), 401, "invalid_token"},
		{"no signature", i.token(t, "none", claims(nil)), 401, "invalid_token"},
		{"no subject", i.token(t, "RS256", claims(map[string]any{"sub": nil})), 401, "invalid_token"},
		{"subject with a line break", i.token(t, "RS256", claims(map[string]any{"sub": "a\nb"})), 401, "invalid_token"},
		{"a scope is missing", i.token(t, "RS256", claims(map[string]any{"scope": "mcp"})), 403, "insufficient_scope"},
		{"no scopes", i.token(t, "RS256", claims(map[string]any{"scope": nil})), 403, "insufficient_scope"},
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

func TestOAuthMetadata(t *testing.T) {
	auth, err := NewOAuth(OAuthOptions{Issuer: "https://login.example.com", URL: "https://example.com/usher", Scopes: []string{"mcp"}})
	if err != nil {
		t.Fatal(err)
	}
	g := New(emptyEndpoints{}, &Options{Auth: AnyOf{NewTokens(&tokenMap{all: map[string][]byte{}}), auth}})
	defer g.Close()
	for path, resource := range map[string]string{
		"/usher/mcp": "https://example.com/usher/mcp", "/usher/servers/a/mcp": "https://example.com/usher/servers/a/mcp",
		"/mcp": "https://example.com/usher/mcp", "": "https://example.com/usher", "/usher": "https://example.com/usher",
	} {
		w := send(t, g.Handler(), "GET", metadataPath+path, "")
		want := `{"resource":"` + resource + `","authorization_servers":["https://login.example.com"],"scopes_supported":["mcp"],"bearer_methods_supported":["header"],"resource_name":"usher"}`
		if w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := send(t, g.Handler(), "GET", metadataPath+"/etc/passwd", ""); w.Code != 404 {
		t.Errorf("any path: %d", w.Code)
	}
	r := httptest.NewRequest("GET", metadataPath+"/mcp", nil)
	r.Host = "example.com"
	named := httptest.NewRecorder()
	if g.Handler().ServeHTTP(named, r); named.Code != 200 {
		t.Errorf("under its own name: %d", named.Code)
	}
	w := send(t, g.Handler(), "POST", "/servers/a/mcp", `{}`)
	if w.Code != 401 || !strings.Contains(w.Header().Get("WWW-Authenticate"), `resource_metadata="https://example.com/.well-known/oauth-protected-resource/usher/servers/a/mcp"`) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	for _, bad := range []OAuthOptions{{}, {Issuer: "https://a"}, {Issuer: "x", URL: "https://a"}, {Issuer: "ftp://a", URL: "https://a"}, {Issuer: "https://a", URL: "https://b?c"}} {
		if _, err := NewOAuth(bad); err == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}

// An issuer that does not answer is a failure of ours, and not asked all the time.
func TestOAuthIssuerDown(t *testing.T) {
	i := newIssuer(t)
	token := i.token(t, "RS256", map[string]any{"iss": i.URL, "aud": "https://u.example.com", "sub": "a", "exp": time.Now().Add(time.Hour).Unix()})
	asked := 0
	down := true
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if asked++; down {
			return nil, errors.New("down")
		}
		return (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	})}
	auth, err := NewOAuth(OAuthOptions{Issuer: i.URL, URL: "https://u.example.com", Client: client})
	if err != nil {
		t.Fatal(err)
	}
	g := New(emptyEndpoints{}, &Options{Auth: auth})
	defer g.Close()
	for range 3 {
		if w := send(t, g.Handler(), "POST", "/mcp", `{}`, "Authorization", "Bearer "+token); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", w.Code, w.Body)
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
