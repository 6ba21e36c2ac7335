package jsonx

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical returns the RFC 8785 form of raw, so that member order, spaces and
// escapes make no difference. Unlike plain RFC 8785 numbers keep their digits:
// mapping them to doubles would make 2^53+1 equal to 2^53 and 1e400 equal to 1e401,
// and so answer one question with another's cached answer. The price is that 1 and
// 1.0 differ. What has no single meaning is an error: duplicate members, invalid
// UTF-8, half of a surrogate pair.
func Canonical(raw []byte) ([]byte, error) {
	v := jsontext.Value(append([]byte(nil), raw...))
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return v, nil
}

// Hash returns the SHA-256 of the canonical form of raw in hex.
func Hash(raw []byte) (string, error) {
	c, err := Canonical(raw)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(c)
	return hex.EncodeToString(sum[:]), nil
}
