package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
)

func pemKey(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func newECKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestClientCredentials(t *testing.T) {
	key := newECKey(t)
	for name, tt := range map[string]struct {
		client  fake.AuthClient
		methods []string
		oauth   config.OAuth
	}{
		"basic":        {fake.AuthClient{ID: "robot", Secret: "s3 cret/+"}, []string{"client_secret_basic"}, config.OAuth{ClientSecret: "s3 cret/+"}},
		"post":         {fake.AuthClient{ID: "robot", Secret: "s3cret", Method: "client_secret_post"}, []string{"client_secret_post"}, config.OAuth{ClientSecret: "s3cret"}},
		"nothing said": {fake.AuthClient{ID: "robot", Secret: "s3cret"}, []string{}, config.OAuth{ClientSecret: "s3cret"}},
		"key":          {fake.AuthClient{ID: "robot", Key: &key.PublicKey}, []string{"private_key_jwt"}, config.OAuth{PrivateKey: pemKey(t, key)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, &fake.AuthOptions{Clients: []fake.AuthClient{tt.client}, AuthMethods: tt.methods, Switches: []string{"no-pkce"}}, &fake.Protected{Challenge: "jobs"})
				w.srv.OAuth = &tt.oauth
				w.srv.OAuth.ClientID, w.srv.OAuth.Grant = "robot", config.GrantClientCredentials
				for range 5 * 60 {
					w.mustCall()
					time.Sleep(time.Minute)
				}
				if n := w.tokens("client_credentials"); n < 5 || n > 7 {
					t.Errorf("%d tokens in five hours", n)
				}
				if e := w.as.Requests(fake.EventToken, "")[0]; e.Param("resource") != mcpURL || e.Param("scope") != "jobs" {
					t.Errorf("token request %s", e.Params)
				}
			})
		})
	}
}

// A workload's assertion is sent once; one that was refused is not sent again.
func TestWorkloadIdentity(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Assertions: []string{"good.jwt"}, Clients: []fake.AuthClient{{ID: "workload"}}, Switches: []string{"no-registration"}}, nil)
	w.srv.OAuth = &config.OAuth{ClientID: "workload", Grant: config.GrantJWTBearer, Assertion: "bad.jwt\n"}
	for range 5 {
		err := w.call(t.Context())
		wantErr(t, err, ErrNeedsLogin, "usher doctor srv")
		if strings.Contains(err.Error(), "bad.jwt") {
			t.Errorf("the error repeats the assertion: %v", err)
		}
	}
	if n := w.tokens(""); n != 1 {
		t.Errorf("a refused assertion was sent %d times", n)
	}
	w.srv.OAuth.Assertion = "good.jwt"
	w.mustCall()
	if n := w.tokens(grantJWTBearer); n != 2 || w.tokens("") != 2 {
		t.Errorf("%d token requests", n)
	}
}

func TestEnterprise(t *testing.T) {
	idp := fake.NewAuth(&fake.AuthOptions{Name: "idp", IDTokens: []string{"id.token"}, ExchangeNext: "https://" + asHost, Clients: []fake.AuthClient{{ID: "desk"}}, Switches: []string{"no-pkce"}})
	idp.Serve("https://idp.example")
	w := newWorld(t, &fake.AuthOptions{Clients: []fake.AuthClient{{ID: "xaa", Secret: "s3cret"}}, AuthMethods: []string{"client_secret_basic"}}, nil)
	w.net.add("idp.example", idp.Handler())
	w.as.Trust(idp)
	w.srv.OAuth = &config.OAuth{
		ClientID: "xaa", ClientSecret: "s3cret", Grant: config.GrantEnterprise,
		IDP: &config.IDP{Issuer: "https://idp.example", ClientID: "desk", IDToken: "id.token"},
	}
	w.mustCall()
	if e := idp.Requests(fake.EventToken, grantExchange); len(e) != 1 || e[0].Param("audience") != w.as.Issuer() || e[0].Param("resource") != mcpURL {
		t.Errorf("exchange %v", e)
	}
	if e := w.as.Requests(fake.EventToken, grantJWTBearer); len(e) != 1 || strings.Contains(string(e[0].Params), "id.token") {
		t.Errorf("the identity went to the wrong server: %v", e)
	}
	w.as.Expire()
	w.mustCall()

	w.srv.OAuth.IDP.IDToken = "expired.token"
	w.as.Expire()
	wantErr(t, w.call(t.Context()), ErrNeedsLogin, "identity")
}

func TestMachineNeedsConfiguration(t *testing.T) {
	w := newWorld(t, nil, nil)
	_, err := w.e.Machine(t.Context(), w.a, w.srv, nil)
	wantErr(t, err, ErrNoFlow)
	w.srv.OAuth.Grant = config.GrantClientCredentials
	wantErr(t, w.call(t.Context()), ErrNeedsLogin, "oauth.clientId")
}

func TestParseKey(t *testing.T) {
	ec := newECKey(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	d, err := ec.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	jwkEC, _ := json.Marshal(jwk{Kty: "EC", Crv: "P-256", D: b64.EncodeToString(d), Kid: "k1"})
	jwkRSA, _ := json.Marshal(jwk{
		Kty: "RSA", N: b64.EncodeToString(rsaKey.N.Bytes()), E: "AQAB", D: b64.EncodeToString(rsaKey.D.Bytes()),
		P: b64.EncodeToString(rsaKey.Primes[0].Bytes()), Q: b64.EncodeToString(rsaKey.Primes[1].Bytes()),
	})
	for name, tt := range map[string]struct{ text, alg, kid string }{
		"PKCS8 EC":  {pemKey(t, ec), "ES256", ""},
		"PKCS8 RSA": {pemKey(t, rsaKey), "RS256", ""},
		"SEC1":      {string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1})), "ES256", ""},
		"PKCS1":     {string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)})), "RS256", ""},
		"JWK EC":    {string(jwkEC), "ES256", "k1"},
		"JWK RSA":   {string(jwkRSA), "RS256", ""},
	} {
		s, err := parseKey(tt.text)
		if err != nil || s.alg != tt.alg || s.kid != tt.kid {
			t.Errorf("%s: %+v, %v", name, s, err)
			continue
		}
		if token, err := s.sign(map[string]any{}, map[string]any{"a": 1}); err != nil || strings.Count(token, ".") != 2 {
			t.Errorf("%s: %q, %v", name, token, err)
		}
	}
	const canary = "c4nary"
	for _, text := range []string{"", canary, "-----BEGIN PRIVATE KEY-----\n" + canary + "\n-----END PRIVATE KEY-----", `{"kty":"EC","crv":"P-256","d":"` + canary + `"}`, `{"kty":"oct","k":"` + canary + `"}`, `{` + canary} {
		if _, err := parseKey(text); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// Tokens bound to a key: at the token endpoint, at the resource, with nonces, and
// over refreshes.
func TestDPoP(t *testing.T) {
	for _, nonce := range []bool{false, true} {
		switches := []string{"require-dpop"}
		if nonce {
			switches = append(switches, "dpop-nonce")
		}
		w := newWorld(t, &fake.AuthOptions{Switches: switches}, nil)
		w.srv.OAuth.DPoP = true
		w.login()
		for range 3 {
			w.mustCall()
		}
		w.as.Expire()
		w.mustCall()
		for _, e := range w.as.Requests(fake.EventResource, "") {
			if e.Detail == "proof" || e.Detail == "foreign" {
				t.Errorf("nonce %v: a request was refused: %s", nonce, e.Detail)
			}
		}
		if g := w.grant(); g.Type != "DPoP" || g.Generation != 2 {
			t.Errorf("grant %v", g)
		}
	}
}

// A server that ignores DPoP must not get away with tokens anybody could use.
func TestDPoPDowngrade(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.srv.OAuth.DPoP = true
	w.as.Intercept("token", func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write([]byte(`{"access_token":"at-loose","token_type":"Bearer"}`))
	})
	_, err := w.tryLogin(nil)
	if !errors.Is(err, ErrRefused) || w.grant() != nil {
		t.Errorf("login with a loose token: %v", err)
	}
}
