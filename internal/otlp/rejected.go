package otlp

import (
	"encoding/binary"
	"fmt"
	"mime"
	"strconv"
)

// Rejected says that the collector took a message but not all that was in it.
type Rejected struct {
	Count   int64  // of spans or points
	Message string // the collector's reason, or only a warning
}

func (r *Rejected) Error() string {
	text := fmt.Sprintf("the collector rejected %d items", r.Count)
	if r.Count == 0 {
		text = "the collector warns"
	}
	if r.Message != "" {
		text += ": " + strconv.QuoteToGraphic(r.Message)
	}
	return text
}

// rejected reads the answer to a message that was taken. Nil: all is well, or the
// answer is none that we know.
func rejected(contentType string, body []byte) error {
	if kind, _, _ := mime.ParseMediaType(contentType); kind != "application/x-protobuf" {
		return nil
	}
	var r Rejected
	fields(body, func(field int, _ uint64, part []byte) {
		if field == 1 && part != nil { // partial_success
			fields(part, func(field int, n uint64, text []byte) {
				switch {
				case field == 1 && text == nil:
					r.Count = int64(n)
				case field == 2 && text != nil:
					r.Message = string(text)
				}
			})
		}
	})
	if r == (Rejected{}) {
		return nil
	}
	return &r
}

// fields goes through a message of protobuf, as far as it can be read. number is the
// value of a varint; part, not nil, is what a field with a length holds.
func fields(message []byte, found func(field int, number uint64, part []byte)) {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
			return
		}
		message = message[n:]
		v, size := uint64(0), 0
		switch tag & 7 {
		case wireVarint, wireBytes:
			if v, size = binary.Uvarint(message); size <= 0 {
				return
			}
		case wireFixed64:
			size = 8
		case wireFixed32:
			size = 4
		default:
			return
		}
		if size > len(message) {
			return
		}
		message = message[size:]
		if tag&7 != wireBytes {
			if tag&7 == wireVarint {
				found(int(tag>>3), v, nil)
			}
			continue
		}
		if v > uint64(len(message)) {
			return
		}
		found(int(tag>>3), 0, message[:v:v])
		message = message[v:]
	}
}
