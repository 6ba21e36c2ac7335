package otlp

import (
	"encoding/binary"
	"math"
	"strings"
)

// The wire types of protobuf, as far as these messages need them.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// writer makes a message of protobuf, field by field. As the format wants it, fields
// that are zero are left out, except for messages: an empty one says that it is there.
type writer struct{ buf []byte }

func (w *writer) tag(field, wire int) {
	w.buf = binary.AppendUvarint(w.buf, uint64(field)<<3|uint64(wire))
}

func (w *writer) varint(field int, v uint64) {
	if v != 0 {
		w.always(field, v)
	}
}

// always writes also what is zero: one of several fields that exclude each other.
func (w *writer) always(field int, v uint64) {
	w.tag(field, wireVarint)
	w.buf = binary.AppendUvarint(w.buf, v)
}

func (w *writer) bool(field int, v bool) {
	if v {
		w.always(field, 1)
	}
}

func (w *writer) fixed32(field int, v uint32) {
	if v != 0 {
		w.tag(field, wireFixed32)
		w.buf = binary.LittleEndian.AppendUint32(w.buf, v)
	}
}

func (w *writer) fixed64(field int, v uint64) {
	if v != 0 {
		w.tag(field, wireFixed64)
		w.buf = binary.LittleEndian.AppendUint64(w.buf, v)
	}
}

// double writes also what is zero: where there is one, it says something.
func (w *writer) double(field int, v float64) {
	w.tag(field, wireFixed64)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(v))
}

// text writes a string. A reader refuses a whole message for one that is no UTF-8.
func (w *writer) text(field int, s string) {
	if s != "" {
		w.bytes(field, []byte(strings.ToValidUTF8(s, "\uFFFD")))
	}
}

// bytes writes also what is empty.
func (w *writer) bytes(field int, b []byte) {
	w.tag(field, wireBytes)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(b)))
	w.buf = append(w.buf, b...)
}

// message writes what fill writes as a message within.
func (w *writer) message(field int, fill func()) {
	w.tag(field, wireBytes)
	w.measured(fill)
}

// packed writes numbers of eight bytes in a row.
func (w *writer) packed(field, n int, bits func(i int) uint64) {
	if n == 0 {
		return
	}
	w.tag(field, wireBytes)
	w.buf = binary.AppendUvarint(w.buf, uint64(n)*8)
	for i := range n {
		w.buf = binary.LittleEndian.AppendUint64(w.buf, bits(i))
	}
}

// measured puts the length of what fill writes before it.
func (w *writer) measured(fill func()) {
	start := len(w.buf)
	w.buf = append(w.buf, 0) // the length of most
	fill()
	size := len(w.buf) - start - 1
	if size < 0x80 {
		w.buf[start] = byte(size)
		return
	}
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(size))
	w.buf = append(w.buf, length[1:n]...) // room; what it holds is overwritten
	copy(w.buf[start+n:], w.buf[start+1:start+1+size])
	copy(w.buf[start:], length[:n])
}
