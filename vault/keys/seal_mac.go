package keys

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"

	"github.com/usher-mcp/usher/vault"
)

// A record without secrets is stored as it is, behind a message authentication code:
//
//	"usa" | format (1 byte) | id of the data key (8) | HMAC-SHA256 (32) | data
//
// The code covers the header, the record's key and version, and the data. Its key
// is derived from the data key, so that the two uses of that key stay apart. It is
// bound to the same things as an encrypted record, see sealBinding.
const (
	macMagic  = "usa"
	macFormat = sealFormatVersion // bound to key and version
	macHeader = len(macMagic) + 1 + len(keyID{})
	macSize   = macHeader + sha256.Size
	macLabel  = "usher record authentication"
)

// macKey derives the key that authenticates records from a data key.
func macKey(dataKey []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, dataKey, nil, macLabel, keySize)
}

// signData returns plain with its code, for the record key and version.
func signData(mac []byte, id keyID, key vault.Key, version int64, plain []byte) []byte {
	out := make([]byte, 0, macSize+len(plain))
	out = append(out, macMagic...)
	out = append(out, macFormat)
	out = append(out, id[:]...)
	out = macSum(out, mac, key, version, plain)
	return append(out, plain...)
}

// macSum appends the code to the header in dst.
func macSum(dst, mac []byte, key vault.Key, version int64, plain []byte) []byte {
	h := hmac.New(sha256.New, mac)
	h.Write(sealBinding(dst[:macHeader], key, version))
	h.Write(plain)
	return h.Sum(dst)
}

// signed says whether data begins like an authenticated record. No plain record
// does: they are JSON, or begin with it.
func signed(data []byte) bool {
	return len(data) >= len(macMagic) && string(data[:len(macMagic)]) == macMagic
}

// signedWith reads which data key authenticated the data.
func signedWith(data []byte) (id keyID, err error) {
	if len(data) < macSize || !signed(data) {
		return id, fmt.Errorf("%w: it carries no authentication code", vault.ErrTampered)
	}
	switch format := data[len(macMagic)]; {
	case format < macFormat:
		return id, fmt.Errorf("%w: its authentication code has the unknown format %d", vault.ErrTampered, format)
	case format > macFormat:
		return id, fmt.Errorf("%w: its authentication code has format %d, this usher knows %d", vault.ErrNewer, format, macFormat)
	}
	return keyID(data[len(macMagic)+1 : macHeader]), nil
}

// verifyData undoes signData; the caller has read the header.
func verifyData(mac []byte, rec vault.Record) ([]byte, error) {
	plain := rec.Data[macSize:]
	want := macSum(append([]byte{}, rec.Data[:macHeader]...), mac, rec.Key, rec.Version, plain)
	if !hmac.Equal(want[macHeader:], rec.Data[macHeader:macSize]) {
		return nil, fmt.Errorf("%w: its authentication code is wrong", vault.ErrTampered)
	}
	return append([]byte{}, plain...), nil
}
