package jsonx

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical returns the RFC 8785 form of raw, so that member order and spaces
// make no difference. Unlike plain RFC 8785 integers keep their digits: mapping
// them to doubles would make 2^53+1 equal to 2^53, and so answer one question
// with another's cached answer. Duplicate members are an error.
func Canonical(raw []byte) ([]byte, error) {
	v := jsontext.Value(append([]byte(nil), raw...))
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
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
