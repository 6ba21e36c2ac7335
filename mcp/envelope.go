package mcp

import (
	"bytes"
	"fmt"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// EnvelopeError says why a text is not a JSON-RPC message.
type EnvelopeError struct {
	// ID is the id it carried where exactly one could be read, so that the right
	// caller can be told.
	ID ID
	// Kind is what it would have been, KindInvalid when that cannot be told. The id of a
	// broken request is the peer's, that of a broken response is ours.
	Kind Kind
	Msg  string
	Err  error // the syntax error below, if that was it
}

func (e *EnvelopeError) Error() string {
	if e.Err != nil {
		return "not a JSON-RPC message: " + e.Err.Error()
	}
	return "not a JSON-RPC message: " + e.Msg
}

func (e *EnvelopeError) Unwrap() error { return e.Err }

func refused(raw []byte, msg string) error {
	id, kind := Peek(raw)
	return &EnvelopeError{ID: id, Kind: kind, Msg: msg}
}

func broken(raw []byte, err error) error {
	id, kind := Peek(raw)
	return &EnvelopeError{ID: id, Kind: kind, Err: err}
}

// Names in error messages are clipped: they are the peer's and may be megabytes.

func twice(key []byte) string { return fmt.Sprintf("member %.60q appears twice", key) }

func resembles(key []byte, known string) string {
	return fmt.Sprintf("member %.60q can be taken for %q", key, known)
}

// Peek reads what can be read of a message that is broken or of which only the
// beginning is there: its id, and what it would have been. The id is absent when it
// does not stand whole within prefix or stands there twice; the kind is KindInvalid
// when neither a method, nor a result or error does.
func Peek(prefix []byte) (ID, Kind) {
	// A number at the end may go on behind it: 12 is not 123.
	prefix = bytes.TrimRight(prefix, "0123456789.eE+-")
	var id ID
	ids := 0
	method, answer, answered := false, false, false
	note := func(key, value []byte) {
		switch string(key) {
		case "id":
			ids++
			id, _ = RawID(value)
		case "method":
			method = true
		case "result", "error":
			answer, answered = true, answered || !null(value)
		}
	}
	m := jsonx.Object(prefix)
	for m.Next() {
		note(m.Key, m.Value)
	}
	note(m.Key, m.Value) // the member whose value is cut off
	if ids != 1 {
		id = ID{}
	}
	switch {
	case method && answered:
		return id, KindInvalid
	case method && ids > 0:
		return id, KindRequest
	case method:
		return id, KindNotification
	case answer:
		return id, KindResponse
	}
	return id, KindInvalid
}

// PeekID reads the id from the beginning of a message that is too long to read
// whole. It reports false when the id does not stand within prefix. See [Peek] for
// whose id that is.
func PeekID(prefix []byte) (ID, bool) {
	id, _ := Peek(prefix)
	return id, id.Present()
}
