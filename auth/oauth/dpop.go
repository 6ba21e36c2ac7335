package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"sync"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// DPoPKey makes proofs that this process holds the key a token is bound to
// (RFC 9449).
type DPoPKey struct {
	sign *signer
	jwk  jwk
}

// NewDPoPKey makes a key and returns it with its text for a grant.
func NewDPoPKey() (*DPoPKey, vault.Secret, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, vault.Secret{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return nil, vault.Secret{}, err
	}
	text := vault.NewSecret(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	key, err := LoadDPoPKey(text)
	return key, text, err
}

// LoadDPoPKey reads a key that newDPoPKey made; nil for the zero secret.
func LoadDPoPKey(text vault.Secret) (*DPoPKey, error) {
	if text.IsZero() {
		return nil, nil
	}
	s, err := parseKey(text.Reveal())
	if err != nil {
		return nil, err
	}
	pub, err := s.key.Public().(*ecdsa.PublicKey).Bytes()
	if err != nil {
		return nil, err
	}
	// Uncompressed point: 4, then x and y of 32 bytes each.
	return &DPoPKey{sign: s, jwk: jwk{Kty: "EC", Crv: "P-256", X: b64.EncodeToString(pub[1:33]), Y: b64.EncodeToString(pub[33:65])}}, nil
}

// thumbprint is the key's name (RFC 7638), for the authorization request.
func (k *DPoPKey) thumbprint() string {
	sum := sha256.Sum256([]byte(`{"crv":"` + k.jwk.Crv + `","kty":"` + k.jwk.Kty + `","x":"` + k.jwk.X + `","y":"` + k.jwk.Y + `"}`))
	return b64.EncodeToString(sum[:])
}

// Proof makes the DPoP header of one request. Access is zero at a token endpoint.
func (k *DPoPKey) Proof(method string, target *url.URL, access vault.Secret, nonce string) (string, error) {
	u := *target
	u.RawQuery, u.Fragment, u.RawFragment, u.User = "", "", "", nil
	claims := map[string]any{"jti": rand.Text(), "htm": method, "htu": u.String(), "iat": time.Now().Unix()}
	if !access.IsZero() {
		sum := sha256.Sum256([]byte(access.Reveal()))
		claims["ath"] = b64.EncodeToString(sum[:])
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	public := map[string]any{"kty": k.jwk.Kty, "crv": k.jwk.Crv, "x": k.jwk.X, "y": k.jwk.Y}
	return k.sign.sign(map[string]any{"typ": "dpop+jwt", "jwk": public}, claims)
}

// Nonces remembers the last DPoP nonce of each origin.
type Nonces struct {
	mu sync.Mutex // guards by
	by map[string]string
}

// Get returns the last nonce of the origin of u; "" when there is none.
func (b *Nonces) Get(u *url.URL) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[Origin(u)]
}

// Set remembers a nonce; an empty or oversized one changes nothing.
func (b *Nonces) Set(u *url.URL, nonce string) {
	if nonce == "" || len(nonce) > 1024 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil || len(b.by) > 1000 {
		b.by = map[string]string{}
	}
	b.by[Origin(u)] = nonce
}
