// Package result builds the results that usher writes itself, and completes those of
// legacy servers for clients of the stateless protocol.
//
// [Text] and [Empty] take the protocol version of the client; [AppendFresh] and
// [Complete] add the members that the stateless protocol requires. A result keeps the bytes
// of its server.
package result

import (
	"bytes"
	"strconv"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// AppendFresh turns the result dst, which ends in }, into a complete one of the
// stateless protocol that says how long it may be kept.
func AppendFresh(dst []byte, ttl time.Duration, public bool) []byte {
	dst = strconv.AppendInt(append(dst[:len(dst)-1], `,"ttlMs":`...), ttl.Milliseconds(), 10)
	scope := `"private"`
	if public {
		scope = `"public"`
	}
	dst = append(append(dst, `,"cacheScope":`...), scope...)
	return append(dst, `,"resultType":"complete"}`...)
}

// Complete adds what the stateless protocol requires to a result of a legacy server.
// What is there already stays.
func Complete(result []byte, method string) []byte {
	var edits []jsonx.Edit
	missing := func(key, value string) {
		if _, ok := jsonx.Get(result, key); !ok {
			edits = append(edits, jsonx.Edit{Key: key, Value: []byte(value)})
		}
	}
	missing("resultType", `"complete"`)
	if cacheable(method) {
		missing("ttlMs", "0")
		missing("cacheScope", `"private"`)
	}
	if len(edits) == 0 {
		return result
	}
	return appendMembers(result, edits)
}

// appendMembers adds members at the end and keeps every byte before them.
func appendMembers(obj []byte, edits []jsonx.Edit) []byte {
	trimmed := bytes.TrimRight(obj, " \t\r\n")
	if jsonx.TypeOf(obj) != "object" || len(trimmed) < 2 {
		return jsonx.Apply(obj, edits...)
	}
	inner := bytes.TrimRight(trimmed[:len(trimmed)-1], " \t\r\n")
	out := append(make([]byte, 0, len(obj)+64), inner...)
	for _, e := range edits {
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(append(jsonx.AppendText(out, e.Key), ':'), e.Value...)
	}
	return append(out, '}')
}

func cacheable(method string) bool {
	switch method {
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList, mcp.MethodResourcesRead:
		return true
	}
	return false
}

// Empty is the result of requests that have none.
func Empty(version string) []byte {
	if mcp.Stateless(version) {
		return []byte(`{"resultType":"complete"}`)
	}
	return []byte(`{}`)
}

// Text is the result of a tool of usher's own.
func Text(version, text string, failed bool) []byte {
	out := append(make([]byte, 0, len(text)+len(text)/8+96), `{"content":[{"type":"text","text":`...)
	out = append(jsonx.AppendText(out, text), `}]`...)
	if failed {
		out = append(out, `,"isError":true`...)
	}
	if mcp.Stateless(version) {
		out = append(out, `,"resultType":"complete"`...)
	}
	return append(out, '}')
}
