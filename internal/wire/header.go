package wire

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	sentinelOpen  = "=?base64?"
	sentinelClose = "?="
)

// HTTP headers.
const (
	HeaderVersion     = "Mcp-Protocol-Version"
	HeaderSession     = "Mcp-Session-Id"
	HeaderMethod      = "Mcp-Method"
	HeaderName        = "Mcp-Name"
	HeaderParamPrefix = "Mcp-Param-"
	HeaderLastEvent   = "Last-Event-Id"
)

// EncodeHeader returns s as a header value: as it is where HTTP can carry it, in
// the base64 sentinel where it cannot (non-ASCII, control characters, space at an
// end) or where it would be taken for a sentinel. A tab within is encoded, too:
// HTTP allows it, but what stands between may make it a space.
func EncodeHeader(s string) string {
	if plainHeader(s) {
		return s
	}
	return sentinelOpen + base64.StdEncoding.EncodeToString([]byte(s)) + sentinelClose
}

func plainHeader(s string) bool {
	if strings.HasPrefix(s, sentinelOpen) && strings.HasSuffix(s, sentinelClose) {
		return false
	}
	if s != strings.Trim(s, " ") {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}

// DecodeHeader undoes [EncodeHeader]. A sentinel that is not valid base64, padded and
// on one line, is an error; a value without the exact wrapper is literal.
func DecodeHeader(v string) (string, error) {
	inner, ok := strings.CutPrefix(v, sentinelOpen)
	if !ok {
		return v, nil
	}
	if inner, ok = strings.CutSuffix(inner, sentinelClose); !ok {
		return v, nil
	}
	if strings.ContainsAny(inner, "\r\n") { // which the decoder would pass over
		return "", errors.New("header value has a line break")
	}
	b, err := base64.StdEncoding.Strict().DecodeString(inner)
	if err != nil {
		return "", fmt.Errorf("header value is not valid base64: %w", err)
	}
	return string(b), nil
}
