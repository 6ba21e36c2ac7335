package mcp

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/lookalike"
)

// Kind tells what a message is.
type Kind uint8

// The kinds of JSON-RPC messages.
const (
	KindInvalid Kind = iota
	KindRequest
	KindNotification
	KindResponse
)

// Message is one JSON-RPC message cut into its parts. All slices are parts of Raw.
type Message struct {
	Raw    []byte // the whole message as it was received
	ID     ID     // absent for notifications
	Method string // "" for responses
	Params []byte // nil when absent or null
	Result []byte // nil when absent; null only where there is no error either
	Error  []byte // the raw error object, nil when absent or null
}

// Kind tells what m is. A message that is a request and a response at once, or
// neither, does not get past [Parse].
func (m *Message) Kind() Kind {
	switch {
	case m.Method != "" && m.ID.Present():
		return KindRequest
	case m.Method != "":
		return KindNotification
	case m.Result != nil || m.Error != nil:
		return KindResponse
	}
	return KindInvalid
}

// ErrBatch is returned by Parse for a JSON array: batches were part of one
// revision only. [SplitBatch] takes them apart.
var ErrBatch = errors.New("a JSON-RPC batch is not one message")

// Parse reads an envelope in one pass. It refuses what two readers could
// understand differently: duplicate members, members that resemble a known one
// (see internal/lookalike), invalid UTF-8, text around the object. A null in the
// place of params, or of the one of result and error that does not apply, counts as
// absent: many encoders write the whole structure. Every error but [ErrBatch] is an
// *EnvelopeError.
func Parse(raw []byte) (Message, error) {
	raw = trimSpace(raw)
	if len(raw) > 0 && raw[0] == '[' {
		return Message{}, ErrBatch
	}
	if !utf8.Valid(raw) {
		return Message{}, broken(raw, jsonx.Valid(raw))
	}
	e := envelope{Message: Message{Raw: raw}}
	m := jsonx.Object(raw)
	for m.Next() {
		if bad := e.member(m.Key, m.Value); bad != "" {
			return Message{}, refused(raw, bad)
		}
	}
	if err := m.Err(); err != nil {
		return Message{}, broken(raw, err)
	}
	if bad := e.check(); bad != "" {
		return Message{}, refused(raw, bad)
	}
	return e.Message, nil
}

// trimSpace cuts off what JSON calls white space, and nothing else.
func trimSpace(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

// envelope is a message while it is read.
type envelope struct {
	Message
	version []byte
	others  [][]byte // names of members that JSON-RPC does not know
}

// maxOthers bounds the unknown members of an envelope, which are compared with each
// other. Nobody sends so many in good faith.
const maxOthers = 64

// member takes one member in and says what is wrong with it, "" when nothing is.
func (e *envelope) member(key, value []byte) (bad string) {
	dup := false
	switch string(key) {
	case "jsonrpc":
		dup, e.version = e.version != nil, value
	case "id":
		if dup = e.ID.Present(); !dup {
			e.ID, bad = readID(value)
		}
	case "method":
		if dup = e.Method != ""; !dup {
			e.Method, bad = readMethod(value)
		}
	case "params":
		dup, e.Params = e.Params != nil, value
	case "result":
		dup, e.Result = e.Result != nil, value
	case "error":
		dup, e.Error = e.Error != nil, value
	default:
		return e.other(key)
	}
	if dup {
		return twice(key)
	}
	return bad
}

func (e *envelope) other(key []byte) (bad string) {
	if known := lookalike.Of(key, envelopeKeys[:]); known != "" {
		return resembles(key, known)
	}
	for _, k := range e.others {
		if bytes.Equal(k, key) {
			return twice(key)
		}
	}
	if len(e.others) == maxOthers {
		return "it has more than 64 unknown members"
	}
	e.others = append(e.others, key)
	return ""
}

var envelopeKeys = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

// check says what is wrong with the whole, "" when nothing is.
func (e *envelope) check() (bad string) {
	if null(e.Params) {
		e.Params = nil
	}
	if null(e.Error) {
		e.Error = nil
	}
	if null(e.Result) && (e.Error != nil || e.Method != "") {
		e.Result = nil
	}
	switch {
	case string(e.version) != `"2.0"`:
		return `"jsonrpc" is not "2.0"`
	case e.Method != "" && (e.Result != nil || e.Error != nil):
		return "it has a method and a result"
	case e.Method != "" && e.ID.Null():
		return "the id of a request must not be null"
	case e.Result != nil && e.Error != nil:
		return "it has a result and an error"
	case e.Method == "" && e.Result == nil && e.Error == nil:
		return "it has no method, result or error"
	case e.Result != nil && (!e.ID.Present() || e.ID.Null()):
		return "a result without an id"
	case e.Params != nil && e.Params[0] != '{' && e.Params[0] != '[':
		return "params is " + jsonx.TypeOf(e.Params) + ", not an object"
	}
	return ""
}

func null(raw []byte) bool { return string(raw) == "null" }

// maxBatch bounds a batch: a slice header is twelve times the size of the shortest
// element.
const maxBatch = 1000

// SplitBatch returns the messages of a JSON-RPC batch (revision 2025-03-26), or
// raw itself when it is a single message. A batch has at most 1,000 messages.
func SplitBatch(raw []byte) ([][]byte, error) {
	raw = trimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return [][]byte{raw}, nil
	}
	var out [][]byte
	e := jsonx.Array(raw)
	for e.Next() {
		if len(out) == maxBatch {
			return nil, &EnvelopeError{Msg: "the batch has more than 1,000 messages"}
		}
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
