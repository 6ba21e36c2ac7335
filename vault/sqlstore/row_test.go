package sqlstore

import (
	"bytes"
	"hash/crc32"
	"testing"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// Short and long records have the same sum, and the one that older files hold.
func TestSum(t *testing.T) {
	if *plainTable() != *crc32.MakeTable(crc32.Castagnoli) {
		t.Error("the table differs from the one of hash/crc32")
	}
	rec := vault.Record{Key: vault.Key{Kind: "pin", Principal: "local", Name: "x"}, Version: 7, Updated: time.UnixMilli(1700000000000)}
	head := "\x03pin\x05local\x01x\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x01\x8b\xcf\xe5\x68\x00"
	for _, n := range []int{0, 1, 5, shortData, shortData + 1, 3 * shortData} {
		rec.Data = bytes.Repeat([]byte{'a', 0, 0xff}, n)[:n]
		want := crc32.Checksum(append([]byte(head), rec.Data...), crc32.MakeTable(crc32.Castagnoli))
		if got := sum(rec); got != int64(want) {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}
