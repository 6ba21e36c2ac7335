package vault

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

const (
	fingerprintPrefix = "secret("
	fingerprintSuffix = ")"
)

// Secret is text that must not be shown: a token, a code, a verifier, a client
// secret. Whatever prints or encodes it gets a short fingerprint, enough to
// tell two secrets apart; only Reveal gives the text.
//
// The text sits behind a pointer because fmt calls no methods on a Secret in an
// unexported field: it then prints the address and not the text. For the same
// reason compare with Equal, not ==. The zero Secret is empty.
type Secret struct{ text *string }

// NewSecret hides text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the text. Every call is a place to look at in review.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero says whether the secret is empty; encoding/json's omitzero uses it.
func (s Secret) IsZero() bool { return s.text == nil || *s.text == "" }

// Equal compares two secrets in constant time.
func (s Secret) Equal(o Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(o.Reveal())) == 1
}

// String returns the fingerprint: `secret(3f2a91)`, or `secret()` when empty.
func (s Secret) String() string {
	if s.IsZero() {
		return fingerprintPrefix + fingerprintSuffix
	}
	sum := sha256.Sum256([]byte(s.Reveal()))
	return fingerprintPrefix + hex.EncodeToString(sum[:3]) + fingerprintSuffix
}

// GoString returns the fingerprint.
func (s Secret) GoString() string { return s.String() }

// Format writes the fingerprint whatever the verb and flags.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue returns the fingerprint.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the fingerprint. Storing a secret therefore takes an
// explicit Reveal.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns the fingerprint as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalText takes the text over. It refuses fingerprints: a caller that reads one
// has stored a Secret without revealing it, and the text is lost.
func (s *Secret) UnmarshalText(text []byte) error {
	t := string(text)
	if isFingerprint(t) {
		return errors.New("a secret's fingerprint was stored in place of the secret")
	}
	*s = NewSecret(t)
	return nil
}

func isFingerprint(s string) bool {
	s, hasPrefix := strings.CutPrefix(s, fingerprintPrefix)
	s, hasSuffix := strings.CutSuffix(s, fingerprintSuffix)
	if !hasPrefix || !hasSuffix {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil && (s == "" || len(s) == 6)
}
