package mcp

import (
	"strconv"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// ID is a JSON-RPC id kept as its JSON text, so that 1, "1" and 2^60 stay what
// they are. It is comparable; the zero value means that there is none.
type ID struct{ text string }

// IntID returns the id of a request of ours.
func IntID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// TextID returns a string id.
func TextID(s string) ID { return ID{string(jsonx.Quote(s))} }

// RawID returns the id whose JSON text is raw, and false when raw is not a string, a
// number or null.
func RawID(raw []byte) (ID, bool) {
	if jsonx.Valid(raw) != nil {
		return ID{}, false
	}
	id, bad := readID(trimSpace(raw))
	return id, bad == ""
}

// Present reports whether the message had an id member.
func (id ID) Present() bool { return id.text != "" }

// Null reports whether the id is null, as in an error about an unreadable message.
func (id ID) Null() bool { return id.text == "null" }

// Int returns the id as an integer where it is one. 7.0, 7e0 and -0 are not: an id
// is echoed, and a peer that changed its text did not echo it.
func (id ID) Int() (int64, bool) {
	n, err := strconv.ParseInt(id.text, 10, 64)
	if err != nil || id.text == "-0" {
		return 0, false
	}
	return n, true
}

// JSON returns the id's JSON text, "null" when there is none.
func (id ID) JSON() string {
	if id.text == "" {
		return "null"
	}
	return id.text
}

// String is the JSON text, for messages to people.
func (id ID) String() string { return id.JSON() }

// maxID bounds an id, which is kept, compared and logged as long as its request runs.
const maxID = 1024

// readID reads an id from valid JSON.
func readID(raw []byte) (id ID, bad string) {
	if len(raw) > maxID {
		return ID{}, "the id is longer than 1,024 bytes"
	}
	switch t := jsonx.TypeOf(raw); t {
	case "string", "number", "null":
		return ID{string(raw)}, ""
	default:
		return ID{}, "the id is " + t
	}
}
