package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
)

var b64 = base64.RawURLEncoding

// signer makes compact JWS signatures with one private key.
type signer struct {
	key crypto.Signer
	alg string
	kid string // names the key, where its owner has given it a name
}

// parseKey reads oauth.privateKey: PEM (PKCS #8, SEC 1 or PKCS #1) or a JWK. The
// algorithm follows from the key. Errors say nothing about the text.
func parseKey(text string) (*signer, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		return parseJWK(text)
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("oauth.privateKey is neither PEM nor a JWK; write ${file:PATH} to read it from a file")
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return newSigner(key)
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return newSigner(key)
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return newSigner(key)
	}
	return nil, errors.New("oauth.privateKey holds no private key that can be read; PKCS #8 is best")
}

func newSigner(key any) (*signer, error) {
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		switch k.Curve {
		case elliptic.P256():
			return &signer{key: k, alg: "ES256"}, nil
		case elliptic.P384():
			return &signer{key: k, alg: "ES384"}, nil
		}
	case *rsa.PrivateKey:
		return &signer{key: k, alg: "RS256"}, nil
	case ed25519.PrivateKey:
		return &signer{key: k, alg: "EdDSA"}, nil
	}
	return nil, errors.New("oauth.privateKey is of a kind that is not supported; use an EC (P-256) or RSA key")
}

// jwk is a JSON Web Key, public or private.
type jwk struct {
	Kty string `json:"kty"`
	Crv string `json:"crv,omitempty"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
	D   string `json:"d,omitempty"`
	N   string `json:"n,omitempty"`
	E   string `json:"e,omitempty"`
	P   string `json:"p,omitempty"`
	Q   string `json:"q,omitempty"`
	Kid string `json:"kid,omitempty"`
}

func parseJWK(text string) (*signer, error) {
	var k jwk
	bad := errors.New("oauth.privateKey is not a JWK with an EC (P-256, P-384) or RSA private key")
	if json.Unmarshal([]byte(text), &k) != nil {
		return nil, bad
	}
	var key any
	switch {
	case k.Kty == "EC" && (k.Crv == "P-256" || k.Crv == "P-384"):
		curve := elliptic.P256()
		if k.Crv == "P-384" {
			curve = elliptic.P384()
		}
		d, err := b64.DecodeString(k.D)
		if err != nil {
			return nil, bad
		}
		if key, err = ecdsa.ParseRawPrivateKey(curve, d); err != nil {
			return nil, bad
		}
	case k.Kty == "RSA":
		r := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: number(k.N), E: int(number(k.E).Int64())}, D: number(k.D), Primes: []*big.Int{number(k.P), number(k.Q)}}
		if r.Validate() != nil {
			return nil, bad
		}
		r.Precompute()
		key = r
	default:
		return nil, bad
	}
	s, err := newSigner(key)
	if err != nil {
		return nil, err
	}
	s.kid = k.Kid
	return s, nil
}

func number(s string) *big.Int {
	raw, _ := b64.DecodeString(s) // nonsense becomes a key that does not validate
	return new(big.Int).SetBytes(raw)
}

// sign returns a compact JWS. Header gets alg, and kid where there is one.
func (s *signer) sign(header, claims map[string]any) (string, error) {
	header["alg"] = s.alg
	if s.kid != "" {
		header["kid"] = s.kid
	}
	h, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	c, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	input := b64.EncodeToString(h) + "." + b64.EncodeToString(c)
	sig, err := s.signature([]byte(input))
	if err != nil {
		return "", err
	}
	return input + "." + b64.EncodeToString(sig), nil
}

func (s *signer) signature(input []byte) ([]byte, error) {
	switch k := s.key.(type) {
	case *ecdsa.PrivateKey:
		var digest []byte
		if s.alg == "ES384" {
			sum := sha512.Sum384(input)
			digest = sum[:]
		} else {
			sum := sha256.Sum256(input)
			digest = sum[:]
		}
		r, v, err := ecdsa.Sign(rand.Reader, k, digest)
		if err != nil {
			return nil, err
		}
		size := (k.Curve.Params().BitSize + 7) / 8
		sig := make([]byte, 2*size)
		r.FillBytes(sig[:size])
		v.FillBytes(sig[size:])
		return sig, nil
	case *rsa.PrivateKey:
		sum := sha256.Sum256(input)
		return rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA256, sum[:])
	}
	return s.key.Sign(rand.Reader, input, crypto.Hash(0)) // Ed25519
}
