package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	ec := generateEC(t)
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
		"PKCS8 EC":  {keyPEM(t, ec), "ES256", ""},
		"PKCS8 RSA": {keyPEM(t, rsaKey), "RS256", ""},
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

func keyPEM(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func generateEC(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
