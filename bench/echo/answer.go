package main

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// echo answers messages. It never changes, so connections share it.
type echo struct {
	legacy bool
	list   []byte // members of the tools/list result
	ttl    int    // for how many milliseconds it is good
}

// toolList renders n tools that look like real ones: a paragraph and a schema.
func toolList(n int) []byte {
	out := []byte(`"tools":[`)
	for i := range n {
		name := "echo"
		if i > 0 {
			out = append(out, ',')
			name = fmt.Sprintf("echo_%04d", i)
		}
		out = fmt.Appendf(out, `{"name":%q,"description":"Returns what it was given, number %d of its kind. Use it to find out whether a call arrives and whose answer comes back.","inputSchema":{"type":"object","properties":{"nonce":{"type":"string","description":"what to return"},"size":{"type":"integer","description":"about how many bytes to return"},"wait":{"type":"integer","description":"milliseconds to take"}},"required":["nonce"]}}`, name, i)
	}
	return append(out, ']')
}

// padding is what answers are filled up with.
var padding = bytes.Repeat([]byte("0123456789abcdef"), 8<<10)

// answer appends the response to a message, nothing for what needs none. wait is
// how long the caller asked it to take, in milliseconds.
func (e *echo) answer(dst, raw []byte) (out []byte, wait int) {
	m, err := mcp.Parse(raw)
	if err != nil || m.Kind() != mcp.KindRequest {
		return dst, 0
	}
	begin := func(members ...string) []byte {
		dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), m.ID.JSON()...)
		dst = append(dst, `,"result":{`...)
		for _, s := range members {
			dst = append(dst, s...)
		}
		return dst
	}
	const caps = `"capabilities":{"tools":{}}`
	switch {
	case m.Method == mcp.MethodToolsCall:
		args, _ := jsonx.Get(m.Params, "arguments")
		return e.call(begin(), args)
	case m.Method == mcp.MethodToolsList:
		return append(append(begin(`"resultType":"complete","cacheScope":"public","ttlMs":`, strconv.Itoa(e.ttl), ","), e.list...), "}}"...), 0
	case m.Method == mcp.MethodDiscover && !e.legacy:
		return append(begin(`"resultType":"complete","supportedVersions":["`, mcp.Latest, `"],`, caps, `,"ttlMs":0,"cacheScope":"private"`), "}}"...), 0
	case m.Method == mcp.MethodInitialize && e.legacy:
		return append(begin(`"protocolVersion":"`, mcp.LatestLegacy, `",`, caps, `,"serverInfo":{"name":"echo","version":"1"}`), "}}"...), 0
	case m.Method == mcp.MethodPing:
		return append(begin(), "}}"...), 0
	}
	return mcp.AppendError(dst, m.ID, mcp.Errorf(mcp.CodeMethodNotFound, "no such method").JSON()), 0
}

// call appends a result of about the size asked for, 256 bytes when it was not.
func (e *echo) call(dst, args []byte) ([]byte, int) {
	nonce, _ := jsonx.Get(args, "nonce")
	size, wait := number(args, "size", 256), number(args, "wait", 0)
	if !e.legacy {
		dst = append(dst, `"resultType":"complete",`...)
	}
	dst = append(dst, `"content":[{"type":"text","text":"`...)
	dst = append(dst, padding[:min(max(size-120, 0), len(padding))]...)
	dst = append(append(dst, `"}],"structuredContent":{"nonce":`...), nonce...)
	return append(dst, "}}}"...), wait
}

func number(args []byte, name string, otherwise int) int {
	raw, ok := jsonx.Get(args, name)
	if n, err := strconv.Atoi(string(raw)); ok && err == nil {
		return n
	}
	return otherwise
}
