package audit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// The compact form of a block's records, since version 2: a fifth of their JSON, and a
// store's work grows with the bytes. A record is, without anything between:
//
//	at         seconds, then nanoseconds, as varints, each less the record's before
//	words      principal, server, account, method, target, outcome; each the number
//	           of an earlier word of the block as a uvarint, counted from 1, or 0 and
//	           then a new word: its length as a uvarint, its bytes
//	arguments  1 and the 32 bytes of the sum; 0 when there were none
//	took       microseconds, as a varint
//	bytes      as a varint
//
// It is part of what is hashed and is never changed; what must change is a new version.

// smallestPacked is the length of a record of which all is zero or known.
const smallestPacked = 11

// words are the fields of a record that repeat, in the order in which they are packed.
func (a *Record) words() [6]*string {
	return [...]*string{&a.Principal, &a.Server, &a.Account, &a.Method, &a.Target, &a.Outcome}
}

// packRecords appends the compact form of records to dst.
func packRecords(dst []byte, records []Record) []byte {
	known := make(map[string]uint64, 64)
	var sec, nsec int64
	for i := range records {
		a := &records[i]
		s, ns := a.At.Unix(), int64(a.At.Nanosecond())
		dst = binary.AppendVarint(dst, s-sec)
		dst = binary.AppendVarint(dst, ns-nsec)
		sec, nsec = s, ns
		for _, w := range a.words() {
			n := known[*w]
			dst = binary.AppendUvarint(dst, n)
			if n == 0 {
				known[*w] = uint64(len(known) + 1)
				dst = append(binary.AppendUvarint(dst, uint64(len(*w))), *w...)
			}
		}
		if a.Arguments == [32]byte{} {
			dst = append(dst, 0)
		} else {
			dst = append(append(dst, 1), a.Arguments[:]...)
		}
		dst = binary.AppendVarint(dst, a.Took.Microseconds())
		dst = binary.AppendVarint(dst, int64(a.Bytes))
	}
	return dst
}

// unpackRecords reads count records, which must be all that data holds. It makes no more
// room than data can fill, whatever count and the lengths in it say.
func unpackRecords(data []byte, count int) ([]Record, error) {
	if count < 0 || count > len(data)/smallestPacked {
		return nil, fmt.Errorf("it says that it holds %d records in %d bytes", count, len(data))
	}
	u := unpacker{rest: data}
	records := make([]Record, count)
	for i := range records {
		if u.record(&records[i]); u.err != nil {
			return nil, fmt.Errorf("record %d: %w", i+1, u.err)
		}
	}
	if len(u.rest) > 0 {
		return nil, fmt.Errorf("%d bytes follow its last record", len(u.rest))
	}
	return records, nil
}

// unpacker reads the compact form from its beginning; err is what went wrong first.
type unpacker struct {
	rest      []byte
	known     []string
	sec, nsec int64
	err       error
}

var (
	errPackedShort  = errors.New("it ends too early or a number in it is too large")
	errPackedTime   = errors.New("its time is none")
	errPackedWord   = errors.New("it names a word that did not come before")
	errPackedMarker = errors.New("its arguments are neither there nor missing")
)

func (u *unpacker) record(a *Record) {
	a.At = u.time()
	for _, w := range a.words() {
		*w = u.word()
	}
	switch marker := u.take(1)[0]; marker {
	case 0:
	case 1:
		copy(a.Arguments[:], u.take(len(a.Arguments)))
	default:
		u.fail(errPackedMarker)
	}
	a.Took = time.Duration(u.number()) * time.Microsecond
	n := u.number()
	if a.Bytes = int(n); int64(a.Bytes) != n {
		u.fail(errPackedShort)
	}
}

func (u *unpacker) time() time.Time {
	u.sec += u.number()
	u.nsec += u.number()
	at := time.Unix(u.sec, 0).UTC()
	if u.nsec < 0 || u.nsec >= int64(time.Second) || at.Year() < 0 || at.Year() > 9999 { // as in JSON
		u.fail(errPackedTime)
		return time.Time{}
	}
	return at.Add(time.Duration(u.nsec))
}

func (u *unpacker) word() string {
	n := u.size()
	if n > uint64(len(u.known)) {
		u.fail(errPackedWord)
		return ""
	}
	if n > 0 {
		return u.known[n-1]
	}
	size := u.size()
	if size > uint64(len(u.rest)) {
		u.fail(errPackedShort)
		return ""
	}
	w := string(u.take(int(size)))
	if !utf8.ValidString(w) {
		w = string([]rune(w)) // as JSON reads it; names may be cut within a letter
	}
	u.known = append(u.known, w)
	return w
}

// take returns the next n bytes, zeros when there are fewer.
func (u *unpacker) take(n int) []byte {
	if n > len(u.rest) {
		u.fail(errPackedShort)
		return make([]byte, n)
	}
	part := u.rest[:n]
	u.rest = u.rest[n:]
	return part
}

func (u *unpacker) number() int64 {
	v, n := binary.Varint(u.rest)
	u.skip(n)
	return v
}

func (u *unpacker) size() uint64 {
	v, n := binary.Uvarint(u.rest)
	u.skip(n)
	return v
}

// skip leaves a number behind; n is not positive when there was none.
func (u *unpacker) skip(n int) {
	if n <= 0 {
		u.fail(errPackedShort)
		return
	}
	u.rest = u.rest[n:]
}

// fail keeps the first error and ends the reading.
func (u *unpacker) fail(err error) {
	if u.err == nil {
		u.err = err
	}
	u.rest = nil
}
