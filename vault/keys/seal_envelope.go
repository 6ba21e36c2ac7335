package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/usher-mcp/usher/vault"
)

// An encrypted record is a header, a nonce, and what AES-256-GCM makes of the data:
//
//	"ush" | format (1 byte) | id of the data key (8) | nonce (12) | ciphertext and tag
//
// The header, the record's key and, since format 2, its version are authenticated
// with it, so that every changed byte and every move to another record or version
// is noticed. See seal_mac.go for records without secrets.
const (
	sealMagic         = "ush"
	sealFormatKey     = 1 // bound to the key only
	sealFormatVersion = 2 // and to the version
	sealFormat        = sealFormatVersion
	sealHeader        = len(sealMagic) + 1 + len(keyID{})
	// sealOverhead is how much longer sealed data is than plain.
	sealOverhead = sealHeader + 12 + 16
)

// keyID names a data key. It is random and says nothing about the key.
type keyID [8]byte

func (id keyID) String() string { return hex.EncodeToString(id[:]) }

func parseKeyID(s string) (id keyID, err error) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("%q is not a key id", s)
	}
	return keyID(raw), nil
}

// keySize is the size of all keys: AES-256.
const keySize = 32

func newKey() []byte {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return key
}

// newAEAD returns AES-256-GCM with a nonce drawn for every message and put
// before it.
func newAEAD(key []byte) (cipher.AEAD, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("a key of %d bytes, want %d", len(key), keySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// sealData encrypts plain for a record.
func sealData(aead cipher.AEAD, id keyID, key vault.Key, version int64, plain []byte) []byte {
	out := make([]byte, 0, len(plain)+sealOverhead)
	out = append(out, sealMagic...)
	out = append(out, sealFormat)
	out = append(out, id[:]...)
	return aead.Seal(out, nil, plain, sealBinding(out, key, version))
}

// sealedWith reads which data key sealed the data.
func sealedWith(sealed []byte) (id keyID, err error) {
	if len(sealed) < sealOverhead || string(sealed[:len(sealMagic)]) != sealMagic {
		return id, fmt.Errorf("%w: it has no seal", vault.ErrTampered)
	}
	if format := sealed[len(sealMagic)]; format == 0 {
		return id, fmt.Errorf("%w: it has no seal", vault.ErrTampered)
	} else if format > sealFormat {
		return id, fmt.Errorf("%w: it has a seal of format %d, this usher knows %d", vault.ErrNewer, format, sealFormat)
	}
	return keyID(sealed[len(sealMagic)+1 : sealHeader]), nil
}

// openData undoes sealData; the caller has read the header.
func openData(aead cipher.AEAD, rec vault.Record) ([]byte, error) {
	header := rec.Data[:sealHeader]
	plain, err := aead.Open(nil, nil, rec.Data[sealHeader:], sealBinding(header, rec.Key, rec.Version))
	if err != nil {
		return nil, vault.ErrTampered
	}
	if plain == nil {
		plain = []byte{}
	}
	return plain, nil
}

// sealBinding is what is authenticated with the data. The lengths keep two keys
// from running into the same bytes.
func sealBinding(header []byte, key vault.Key, version int64) []byte {
	out := make([]byte, 0, len(header)+len(key.Kind)+len(key.Principal)+len(key.Name)+16)
	out = append(out, header...)
	for _, part := range []string{key.Kind, key.Principal, key.Name} {
		out = binary.AppendUvarint(out, uint64(len(part)))
		out = append(out, part...)
	}
	if header[len(sealMagic)] == sealFormatKey {
		return out
	}
	return binary.BigEndian.AppendUint64(out, uint64(version))
}
