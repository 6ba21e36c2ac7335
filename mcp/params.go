package mcp

import (
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/lookalike"
)

// Params are the members of a request's params that a host must know. The rest is
// not looked at. A member that is null counts as absent.
type Params struct {
	Name      string // tools/call, prompts/get
	URI       string // resources/*
	TaskID    string // tasks/*
	Arguments []byte // nil when absent
	Meta      []byte // nil when absent, else an object without duplicate members
	Cursor    []byte // raw, nil when absent: an empty string is a cursor
	Retry     bool   // carries inputResponses or requestState
}

var paramKeys = [...]string{"name", "uri", "taskId", "arguments", "_meta", "cursor", "inputResponses", "requestState", "ref"}

// ReadParams reads the members that policy and routing decide on. Duplicates and
// lookalikes of them are refused, and so are duplicates in `_meta`: the server
// behind us may read the other one. Arguments are the server's business and may
// hold whatever is JSON.
func ReadParams(params []byte) (Params, *Error) {
	var p Params
	if params == nil {
		return p, nil
	}
	if t := jsonx.TypeOf(params); t != "object" {
		return p, Errorf(CodeInvalidParams, "params is %s, not an object", t)
	}
	var seen [len(paramKeys)]bool
	m := jsonx.Object(params)
	for m.Next() {
		k := paramIndex(m.Key)
		if k < 0 {
			if known := lookalike.Of(m.Key, paramKeys[:]); known != "" {
				return Params{}, Errorf(CodeInvalidParams, "params: %s", resembles(m.Key, known))
			}
			continue
		}
		if seen[k] {
			return Params{}, Errorf(CodeInvalidParams, "params: %s", twice(m.Key))
		}
		seen[k] = true
		if bad := p.set(paramKeys[k], m.Value); bad != "" {
			return Params{}, Errorf(CodeInvalidParams, "%q of params %s", m.Key, bad)
		}
	}
	if err := m.Err(); err != nil {
		return Params{}, Errorf(CodeInvalidParams, "params: %v", err)
	}
	return p, nil
}

func paramIndex(key []byte) int {
	for i := range paramKeys {
		if paramKeys[i] == string(key) {
			return i
		}
	}
	return -1
}

// set takes one member in and says what is wrong with it, "" when nothing is.
func (p *Params) set(key string, value []byte) (bad string) {
	if null(value) {
		return ""
	}
	switch key {
	case "name":
		p.Name, bad = decisive(value)
	case "uri":
		p.URI, bad = decisive(value)
	case "taskId":
		p.TaskID, bad = decisive(value)
	case "arguments":
		p.Arguments = value
	case "_meta":
		if t := jsonx.TypeOf(value); t != "object" {
			return "is " + t + ", not an object"
		}
		if name, dup := jsonx.Duplicate(value); dup {
			return "is ambiguous: " + twice([]byte(name))
		}
		p.Meta = value
	case "cursor":
		p.Cursor = value
	case "ref":
		return checkRef(value)
	default:
		p.Retry = true
	}
	return bad
}

var refKeys = [...]string{"type", "name", "uri"}

// checkRef says what is wrong with what a completion refers to, "" when nothing is.
// It is guarded like params themselves: name and uri say whose completion it is.
func checkRef(ref []byte) (bad string) {
	for m := jsonx.Object(ref); m.Next(); {
		if known := lookalike.Of(m.Key, refKeys[:]); known != "" {
			return "is ambiguous: " + resembles(m.Key, known)
		}
	}
	if name, dup := jsonx.Duplicate(ref); dup {
		return "is ambiguous: " + twice([]byte(name))
	}
	return ""
}

// decisive reads a string that decisions are made on.
func decisive(value []byte) (text, bad string) {
	text, ok := jsonx.StrictText(value)
	switch {
	case ok && len(text) > limit.URISize:
		return "", fmt.Sprintf("has %d bytes, more than %d", len(text), limit.URISize)
	case ok:
		return text, ""
	case jsonx.TypeOf(value) != "string":
		return "", "is " + jsonx.TypeOf(value) + ", not a string"
	}
	return "", "is not valid text"
}

// NameFor returns what the Mcp-Name header must hold for method, and false for
// methods that have none.
func (p *Params) NameFor(method string) (string, bool) {
	switch {
	case method == MethodToolsCall, method == MethodPromptsGet:
		return p.Name, true
	case method == MethodResourcesRead:
		return p.URI, true
	case strings.HasPrefix(method, methodTasksPrefix):
		return p.TaskID, p.TaskID != ""
	}
	return "", false
}

// Describe names a request for messages to people: method and what it is about.
func (p *Params) Describe(method string) string {
	if name, ok := p.NameFor(method); ok {
		return method + " " + name
	}
	return method
}

// SpanName names a request for a trace: [Params.Describe] without the URI of a
// resource, which may hold credentials and is another one for every resource.
func (p *Params) SpanName(method string) string {
	if method == MethodResourcesRead {
		return method
	}
	return p.Describe(method)
}
