package wire

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

// RawID returns the id whose JSON text is raw; raw must be a string, a number or
// null.
func RawID(raw []byte) (ID, bool) {
	id, bad := readID(raw)
	return id, bad == ""
}

// Present reports whether the message had an id member.
func (id ID) Present() bool { return id.text != "" }

// Null reports whether the id is null, as in an error about an unreadable message.
func (id ID) Null() bool { return id.text == "null" }

// Int returns the id as an integer where it is one. 7.0 and 7e0 are not: an id
// is echoed, so whoever changes its text did not echo it.
func (id ID) Int() (int64, bool) {
	n, err := strconv.ParseInt(id.text, 10, 64)
	return n, err == nil
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

func readID(raw []byte) (id ID, bad string) {
	switch jsonx.TypeOf(raw) {
	case "string", "number", "null":
		return ID{string(raw)}, ""
	}
	return ID{}, "the id is " + jsonx.TypeOf(raw)
}

// PeekID reads the id from the beginning of a message that is too long to read
// whole. It reports false when the id does not stand within prefix.
func PeekID(prefix []byte) (ID, bool) {
	for m := jsonx.Object(prefix); m.Next(); {
		if string(m.Key) == "id" {
			return RawID(m.Value)
		}
	}
	return ID{}, false
}
