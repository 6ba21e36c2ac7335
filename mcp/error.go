package mcp

import (
	"fmt"
	"math"
	"strconv"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// maxSafe is the largest integer up to which a float64 holds every integer.
const maxSafe = 1<<53 - 1

// Error codes of JSON-RPC and MCP.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeResourceNotFound   = -32002 // before 2026-07-28; CodeInvalidParams since
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
	CodeURLElicitation     = -32042 // 2025-11-25
)

// Error is a JSON-RPC error object. It is an answer of the peer, never a failure
// of the connection.
type Error struct {
	Code    int64
	Message string
	Data    []byte // raw JSON, nil when absent
	Raw     []byte // the object as received, nil for errors of our own
}

func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("an error without a message (code %d)", e.Code)
	}
	return fmt.Sprintf("%s (code %d)", e.Message, e.Code)
}

// Errorf makes an error of our own.
func Errorf(code int64, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// ParseError reads an error object. One that lacks a code or message is still an
// error: the fields stay zero. A bare string is the message.
func ParseError(raw []byte) *Error {
	e := &Error{Raw: raw}
	if text, ok := jsonx.Text(raw); ok {
		e.Message = text
		return e
	}
	for m := jsonx.Object(raw); m.Next(); {
		switch string(m.Key) {
		case "code":
			e.Code = readCode(m.Value)
		case "message":
			e.Message, _ = jsonx.Text(m.Value)
		case "data":
			e.Data = m.Value
		}
	}
	return e
}

// readCode returns the integer that raw holds, 0 when it holds none. A float such as
// -32601.0 is what some encoders make of an integer.
func readCode(raw []byte) int64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafe {
		return 0
	}
	return int64(f)
}

// JSON returns the error object: the received bytes, or one made from the fields.
func (e *Error) JSON() []byte {
	if e.Raw != nil {
		return e.Raw
	}
	out := append([]byte(`{"code":`), strconv.FormatInt(e.Code, 10)...)
	out = append(out, `,"message":`...)
	out = jsonx.AppendText(out, e.Message)
	if e.Data != nil {
		out = append(append(out, `,"data":`...), e.Data...)
	}
	return append(out, '}')
}

// StatelessCode reports whether only a server of the stateless protocol can have
// answered with this code.
func StatelessCode(code int64) bool {
	return code == CodeHeaderMismatch || code == CodeMissingCapability || code == CodeUnsupportedVersion
}

// UnsupportedVersions reads the versions a server names in a CodeUnsupportedVersion
// error.
func UnsupportedVersions(e *Error) []string {
	supported, ok := jsonx.Get(e.Data, "supported")
	if !ok {
		return nil
	}
	var out []string
	for v := jsonx.Array(supported); v.Next() && len(out) < maxVersions; {
		if s, ok := jsonx.Text(v.Value); ok {
			out = append(out, s)
		}
	}
	return out
}

// maxVersions bounds the versions that are read from an error; five exist.
const maxVersions = 100
