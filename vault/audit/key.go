package audit

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// Key authenticates audit blocks: an attacker who can write the database, but does not
// have the store's encryption key, cannot rewrite a chain. It is an encrypted record of
// its own, so that it outlives rotations of the data key. The zero value is not a
// usable key.
type Key struct {
	id    string
	key   []byte
	since time.Time
}

// keyJSON is the record.
type keyJSON struct {
	Key   []byte    `json:"key"`
	Since time.Time `json:"since"`
}

// LoadKey returns the audit key of a store. The first one to ask makes it.
func LoadKey(ctx context.Context, s vault.Records) (Key, error) {
	name := vault.LocalKey(vault.KindAudit, "chain")
	rec, err := s.Get(ctx, name)
	if errors.Is(err, vault.ErrNotFound) {
		data, encodeErr := json.Marshal(keyJSON{Key: newKey(), Since: time.Now().UTC().Truncate(time.Millisecond)})
		if encodeErr != nil {
			return Key{}, encodeErr
		}
		if rec, err = s.Put(ctx, name, data, 0); errors.Is(err, vault.ErrConflict) {
			rec, err = s.Get(ctx, name)
		}
	}
	if err != nil {
		return Key{}, fmt.Errorf("read the audit key: %w", err)
	}
	var j keyJSON
	if err := json.Unmarshal(rec.Data, &j); err != nil || len(j.Key) != keySize {
		return Key{}, &vault.CorruptError{Key: name, Err: errors.New("it is not an audit key")}
	}
	sum := sha256.Sum256(append([]byte("usher audit key\x00"), j.Key...))
	return Key{id: hex.EncodeToString(sum[:8]), key: j.Key, since: j.Since}, nil
}

// keySize is the length of an audit key in bytes.
const keySize = 32

func newKey() []byte {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return key
}

// String shows the id only.
func (k Key) String() string { return "auditKey(" + k.id + ")" }

// Format shows the id only, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// code authenticates the bytes of a block.
func (k Key) code(detail []byte) string {
	h := hmac.New(sha256.New, k.key)
	h.Write(detail)
	return hex.EncodeToString(h.Sum(nil))
}

// codeSeparator stands between the hash of a block and its code.
const codeSeparator = ":"

// check says why a block is not authentic, empty when it is. A block without a code
// is as good as its hash if it is from before there was a key.
func (k *Key) check(b Block) string {
	switch {
	case k == nil:
		return ""
	case b.Key == "" && k.key != nil && b.newest().After(k.since):
		return fmt.Sprintf("block %d carries no authentication code though there was a key when it was written", b.Number)
	case b.Key == "":
		return ""
	case b.Key != k.id:
		return fmt.Sprintf("block %d was authenticated with a key that the store does not have", b.Number)
	case !hmac.Equal([]byte(b.code), []byte(k.code(b.detail))):
		return fmt.Sprintf("block %d is not authentic: somebody without the key wrote it", b.Number)
	}
	return ""
}

// newest is the time of the last record.
func (b Block) newest() (at time.Time) {
	for _, a := range b.Records {
		if a.At.After(at) {
			at = a.At
		}
	}
	return at
}
