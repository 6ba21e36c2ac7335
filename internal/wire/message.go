package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// Kind tells what a message is.
type Kind uint8

// The kinds of JSON-RPC messages.
const (
	Invalid Kind = iota
	Request
	Notification
	Response
)

// Message is one JSON-RPC message cut into its parts. All slices are parts of Raw.
type Message struct {
	Raw    []byte // the whole message as it was received
	ID     ID     // absent for notifications
	Method string // "" for responses
	Params []byte // nil when absent
	Result []byte // nil when absent
	Error  []byte // the raw error object, nil when absent
}

// Kind tells what m is. A message that is a request and a response at once, or
// neither, does not get past [Parse].
func (m *Message) Kind() Kind {
	switch {
	case m.Method != "" && m.ID.Present():
		return Request
	case m.Method != "":
		return Notification
	case m.Result != nil || m.Error != nil:
		return Response
	}
	return Invalid
}

// ErrBatch is returned by Parse for a JSON array: batches were part of one
// revision only. [SplitBatch] takes them apart.
var ErrBatch = errors.New("a JSON-RPC batch is not one message")

// EnvelopeError says why a text is no JSON-RPC message. ID is the id it carried
// where one could be read, so that the right caller can be told.
type EnvelopeError struct {
	ID  ID
	Msg string
	Err error // the syntax error below, if that was it
}

func (e *EnvelopeError) Error() string {
	if e.Err != nil {
		return "not a JSON-RPC message: " + e.Err.Error()
	}
	return "not a JSON-RPC message: " + e.Msg
}

func (e *EnvelopeError) Unwrap() error { return e.Err }

// Parse reads an envelope in one pass. It refuses what two readers could
// understand differently: duplicate members, members that differ from a known one
// only in case, invalid UTF-8, text after the object.
func Parse(raw []byte) (Message, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '[' {
		return Message{}, ErrBatch
	}
	if !utf8.Valid(raw) {
		return Message{}, &EnvelopeError{Err: jsonx.Valid(raw)}
	}
	msg := Message{Raw: raw}
	var version []byte
	var others names
	for m := jsonx.Object(raw); ; {
		if !m.Next() {
			if err := m.Err(); err != nil {
				return Message{}, &EnvelopeError{ID: msg.ID, Err: err}
			}
			break
		}
		dup, bad := false, ""
		switch string(m.Key) {
		case "jsonrpc":
			dup, version = version != nil, m.Value
		case "id":
			dup = msg.ID.Present()
			if msg.ID, bad = readID(m.Value); bad != "" {
				return Message{}, &EnvelopeError{Msg: bad}
			}
		case "method":
			dup = msg.Method != ""
			if msg.Method, bad = readMethod(m.Value); bad != "" {
				return Message{}, &EnvelopeError{ID: msg.ID, Msg: bad}
			}
		case "params":
			dup, msg.Params = msg.Params != nil, m.Value
		case "result":
			dup, msg.Result = msg.Result != nil, m.Value
		case "error":
			dup, msg.Error = msg.Error != nil, m.Value
		default:
			if known := caseVariant(m.Key, envelopeKeys); known != "" {
				return Message{}, &EnvelopeError{ID: msg.ID, Msg: fmt.Sprintf("member %q differs from %q only in case", m.Key, known)}
			}
			dup = !others.add(m.Key)
		}
		if dup {
			return Message{}, &EnvelopeError{ID: msg.ID, Msg: fmt.Sprintf("member %q appears twice", m.Key)}
		}
	}
	return msg, check(&msg, version)
}

var envelopeKeys = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

func check(m *Message, version []byte) error {
	fail := func(msg string) error { return &EnvelopeError{ID: m.ID, Msg: msg} }
	switch {
	case string(version) != `"2.0"`:
		return fail(`"jsonrpc" is not "2.0"`)
	case m.Method != "" && (m.Result != nil || m.Error != nil):
		return fail("it has a method and a result")
	case m.Method != "" && m.ID.Null():
		return fail("the id of a request must not be null")
	case m.Result != nil && m.Error != nil:
		return fail("it has a result and an error")
	case m.Method == "" && m.Result == nil && m.Error == nil:
		return fail("it has no method, result or error")
	case m.Method == "" && !m.ID.Present() && m.Error == nil:
		return fail("a result without an id")
	case m.Params != nil && m.Params[0] != '{' && m.Params[0] != '[':
		return fail("params is " + jsonx.TypeOf(m.Params) + ", not an object")
	}
	return nil
}

// names remembers member names to find duplicates; few are expected.
type names struct{ seen []string }

func (n *names) add(key []byte) bool {
	for _, s := range n.seen {
		if s == string(key) {
			return false
		}
	}
	if len(n.seen) >= 64 {
		return false // nobody sends so many unknown members in good faith
	}
	n.seen = append(n.seen, string(key))
	return true
}

// caseVariant returns the known name that key resembles, "" when it is free.
func caseVariant[K interface{ ~[6]string | ~[]string }](key []byte, known K) string {
	for i := range len(known) {
		if len(known[i]) == len(key) && strings.EqualFold(known[i], string(key)) {
			return known[i]
		}
	}
	return ""
}

func readMethod(raw []byte) (method, bad string) {
	s, ok := jsonx.Text(raw)
	if !ok {
		return "", "method is " + jsonx.TypeOf(raw) + ", not a string"
	}
	if s == "" {
		return "", "method is empty"
	}
	return s, ""
}

// SplitBatch returns the messages of a JSON-RPC batch (revision 2025-03-26), or
// raw itself when it is a single message.
func SplitBatch(raw []byte) ([][]byte, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return [][]byte{raw}, nil
	}
	var out [][]byte
	e := jsonx.Array(raw)
	for e.Next() {
		out = append(out, e.Value)
	}
	if err := e.Err(); err != nil {
		return nil, &EnvelopeError{Err: err}
	}
	if len(out) == 0 {
		return nil, &EnvelopeError{Msg: "the batch is empty"}
	}
	return out, nil
}
