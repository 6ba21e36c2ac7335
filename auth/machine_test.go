package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
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
	if n := w.tokens(oauth.GrantTypeJWTBearer); n != 2 || w.tokens("") != 2 {
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
	if e := idp.Requests(fake.EventToken, oauth.GrantTypeTokenExchange); len(e) != 1 || e[0].Param("audience") != w.as.Issuer() || e[0].Param("resource") != mcpURL {
		t.Errorf("exchange %v", e)
	}
	if e := w.as.Requests(fake.EventToken, oauth.GrantTypeJWTBearer); len(e) != 1 || strings.Contains(string(e[0].Params), "id.token") {
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
