package gateway

import (
	"net/http"
	"sync"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// answer is what a request ends with: a result, an error, or nothing when it was
// cancelled.
type response struct {
	result []byte
	more   string // members to add to the result, each with a comma before it
	err    *mcp.Error
	none   bool
}

func failure(code int64, format string, args ...any) response {
	return response{err: mcp.Errorf(code, format, args...)}
}

// append appends the response with the given id.
func (a *response) append(dst []byte, id mcp.ID) []byte {
	if a.err != nil {
		return appendError(dst, id, a.err)
	}
	if a.more == "" {
		return mcp.AppendResult(dst, id, a.result)
	}
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id.JSON()...)
	dst = append(dst, `,"result":`...)
	dst = splice(dst, a.result, a.more)
	return append(dst, '}')
}

// appendError appends an error response. One that answers nobody in particular has
// no id.
func appendError(dst []byte, id mcp.ID, e *mcp.Error) []byte {
	if id.Present() && !id.Null() {
		return mcp.AppendError(dst, id, e.JSON())
	}
	dst = append(dst, `{"jsonrpc":"2.0","error":`...)
	dst = append(dst, e.JSON()...)
	return append(dst, '}')
}

// splice appends obj with more members at its end; its own bytes stay as they are.
func splice(dst, obj []byte, more string) []byte {
	end := len(obj) - 1 // the brace
	last := end
	for last > 0 && isSpace(obj[last-1]) {
		last--
	}
	if obj[last-1] == '{' {
		more = more[1:]
	}
	dst = append(dst, obj[:end]...)
	dst = append(dst, more...)
	return append(dst, '}')
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// status is the HTTP status of a response in the stateless protocol.
func (a *response) status() int {
	if a.err == nil {
		return http.StatusOK
	}
	switch a.err.Code {
	case mcp.CodeMethodNotFound:
		return http.StatusNotFound
	case mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// cacheable reports whether complete results of a method say how long they may be
// kept.
func cacheable(method string) bool {
	switch method {
	case mcp.MethodDiscover, mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList,
		mcp.MethodTemplatesList, mcp.MethodResourcesRead:
		return true
	}
	return false
}

// completions remember what long lists lacked. A list is served again and again, as
// the very same bytes, and need not be looked through each time.
type completions struct {
	mu  sync.RWMutex             // guards all
	all map[[2]string]completion // by the endpoint's key and the method
}

type completion struct {
	first *byte // where the list begins, to know it again
	size  int
	more  string
}

// longList is what is worth remembering.
const longList = 4 << 10

func (c *completions) complete(endpoint, method string, result []byte) response {
	if len(result) < longList || !cacheable(method) || method == mcp.MethodResourcesRead {
		return complete(method, result)
	}
	key := [2]string{endpoint, method}
	c.mu.RLock()
	k, ok := c.all[key]
	c.mu.RUnlock()
	if ok && k.first == &result[0] && k.size == len(result) {
		return response{result: result, more: k.more}
	}
	a := complete(method, result)
	if a.err == nil {
		c.remember(key, completion{&result[0], len(result), a.more})
	}
	return a
}

// remember keeps a completion; each keeps a list in memory.
func (c *completions) remember(key [2]string, k completion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= limit.Completions {
		c.all = map[[2]string]completion{}
	}
	c.all[key] = k
}

// complete makes a result fit for a client of the stateless protocol: what a server of the
// older one could not say is added, the rest stays as it is.
func complete(method string, result []byte) response {
	var typed, timed, scoped, whole bool
	m := jsonx.Object(result)
	for m.Next() {
		switch string(m.Key) {
		case "resultType":
			typed = true
			whole = string(m.Value) == `"complete"`
		case "ttlMs":
			timed = true
		case "cacheScope":
			scoped = true
		}
	}
	if m.Err() != nil {
		return failure(mcp.CodeInternal, "the server answered with %s instead of an object", jsonx.TypeOf(result))
	}
	a := response{result: result}
	if !typed {
		a.more = `,"resultType":"complete"`
	}
	if !cacheable(method) || typed && !whole {
		return a
	}
	if !timed {
		a.more += `,"ttlMs":0`
	}
	if !scoped {
		a.more += `,"cacheScope":"private"`
	}
	return a
}
