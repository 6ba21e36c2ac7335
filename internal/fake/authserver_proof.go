package fake

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	mathbig "math/big"
	"net/http"
	"net/url"
	"strings"
	"time"
)

var rawURL = base64.RawURLEncoding

// jwt is a token whose signature fits one key.
type jwt struct {
	Typ string
	Key *ecdsa.PublicKey // jwk of the header, if there is one
	Jkt string

	Iss, Sub, Aud, Jti, Htm, Htu, Ath, Nonce string
	Iat, Exp                                 int64
}

// parseJWT reads an ES256 token and checks its signature with key, or with the one
// in its header when key is nil.
func parseJWT(text string, key *ecdsa.PublicKey) (jwt, bool) {
	var t jwt
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return t, false
	}
	var head struct {
		Alg, Typ string
		Jwk      struct{ Kty, Crv, X, Y, D string }
	}
	h, err1 := rawURL.DecodeString(parts[0])
	c, err2 := rawURL.DecodeString(parts[1])
	sig, err3 := rawURL.DecodeString(parts[2])
	if err1 != nil || err2 != nil || err3 != nil || len(sig) != 64 || json.Unmarshal(h, &head) != nil || json.Unmarshal(c, &t) != nil || head.Alg != "ES256" {
		return t, false
	}
	t.Typ = head.Typ
	if head.Jwk.Kty == "EC" && head.Jwk.D == "" {
		x, _ := rawURL.DecodeString(head.Jwk.X)
		y, _ := rawURL.DecodeString(head.Jwk.Y)
		pub, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
		if err != nil {
			return t, false
		}
		t.Key = pub
		sum := sha256.Sum256([]byte(`{"crv":"P-256","kty":"EC","x":"` + head.Jwk.X + `","y":"` + head.Jwk.Y + `"}`))
		t.Jkt = rawURL.EncodeToString(sum[:])
	}
	if key == nil {
		key = t.Key
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	return t, key != nil && ecdsa.Verify(key, digest[:], new(mathbig.Int).SetBytes(sig[:32]), new(mathbig.Int).SetBytes(sig[32:]))
}

// validAssertion checks private_key_jwt.
func validAssertion(form url.Values, c AuthClient, issuer string) bool {
	t, ok := parseJWT(form.Get("client_assertion"), c.Key)
	now := time.Now().Unix()
	return ok && form.Get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" &&
		t.Iss == c.ID && t.Sub == c.ID && t.Aud == issuer && t.Jti != "" && t.Exp > now && t.Exp < now+600 && t.Iat <= now+5
}

// checkProof checks the DPoP proof of a request and returns the thumbprint of its
// key. Without a proof both results are empty unless one is required.
func (s *AuthServer) checkProof(r *http.Request, access, address string) (jkt, problem string) {
	proofs := r.Header.Values("DPoP")
	_, required := s.sw.get("require-dpop")
	if len(proofs) == 0 {
		if required {
			return "", "invalid_dpop_proof"
		}
		return "", ""
	}
	t, ok := parseJWT(proofs[0], nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	age := time.Since(time.Unix(t.Iat, 0))
	if !ok || len(proofs) != 1 || t.Typ != "dpop+jwt" || t.Key == nil || t.Htm != r.Method || t.Htu != address || t.Jti == "" ||
		s.proofs[t.Jti] || age > time.Minute || age < -time.Minute {
		return "", "invalid_dpop_proof"
	}
	if access != "" {
		sum := sha256.Sum256([]byte(access))
		if t.Ath != rawURL.EncodeToString(sum[:]) {
			return "", "invalid_dpop_proof"
		}
	}
	s.proofs[t.Jti] = true
	if _, on := s.sw.get("dpop-nonce"); on && (s.nonce == "" || t.Nonce != s.nonce) {
		if s.nonce == "" {
			s.nonce = secret("nonce-")
		}
		return "", "use_dpop_nonce"
	}
	return t.Jkt, ""
}

func (s *AuthServer) currentNonce() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nonce
}
