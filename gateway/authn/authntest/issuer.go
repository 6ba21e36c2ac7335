// Package authntest has what tests of authentication need: a token store in memory and
// an OIDC issuer on loopback.
package authntest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Issuer is an OIDC issuer with one key.
type Issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

// NewIssuer starts an issuer that ends with the test.
func NewIssuer(t *testing.T) *Issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"authorization_endpoint":%[1]q,"token_endpoint":%[1]q,"id_token_signing_alg_values_supported":["RS256"]}`, i.URL, i.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		e := big.NewInt(int64(key.E)).Bytes()
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","alg":"RS256","use":"sig","kid":"k","n":%q,"e":%q}]}`, Encode(key.N.Bytes()), Encode(e))
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// Encode is base64url without padding, as JWTs have it.
func Encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Token signs claims.
func (i *Issuer) Token(t *testing.T, alg string, claims map[string]any) string {
	t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := Encode([]byte(`{"alg":"`+alg+`","kid":"k","typ":"at+jwt"}`)) + "." + Encode(body)
	if alg == "none" {
		return text + "."
	}
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + Encode(sig)
}
