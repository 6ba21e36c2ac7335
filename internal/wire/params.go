package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// Params are the members of a request's params that a host must know. The rest is
// not looked at.
type Params struct {
	Name      string // tools/call, prompts/get
	URI       string // resources/*
	TaskID    string // tasks/*
	Arguments []byte // nil when absent
	Meta      []byte // nil when absent
	Cursor    []byte // raw, nil when absent: an empty string is a cursor
	Retry     bool   // carries inputResponses or requestState
}

var paramKeys = []string{"name", "uri", "taskId", "arguments", "_meta", "cursor", "inputResponses", "requestState"}

// ReadParams reads the members that policy and routing decide on. Duplicates and
// case variants of them are refused: the server behind us may read the other one.
func ReadParams(params []byte) (Params, *Error) {
	var p Params
	if params == nil {
		return p, nil
	}
	if params[0] != '{' {
		return p, Errorf(CodeInvalidParams, "params is %s, not an object", jsonx.TypeOf(params))
	}
	var seen [8]bool
	m := jsonx.Object(params)
	for m.Next() {
		k := keyIndex(m.Key)
		if k < 0 {
			if known := caseVariant(m.Key, paramKeys); known != "" {
				return p, Errorf(CodeInvalidParams, "member %q of params differs from %q only in case", m.Key, known)
			}
			continue
		}
		if seen[k] {
			return p, Errorf(CodeInvalidParams, "member %q of params appears twice", m.Key)
		}
		seen[k] = true
		if bad := p.set(k, m.Value); bad != "" {
			return p, Errorf(CodeInvalidParams, "%q of params is %s", m.Key, bad)
		}
	}
	if err := m.Err(); err != nil {
		return p, Errorf(CodeInvalidParams, "params: %v", err)
	}
	return p, nil
}

func keyIndex(key []byte) int {
	for i, k := range paramKeys {
		if k == string(key) {
			return i
		}
	}
	return -1
}

func (p *Params) set(key int, value []byte) (bad string) {
	text := func(dst *string) string {
		s, ok := jsonx.Text(value)
		if !ok {
			return jsonx.TypeOf(value) + ", not a string"
		}
		*dst = s
		return ""
	}
	switch paramKeys[key] {
	case "name":
		return text(&p.Name)
	case "uri":
		return text(&p.URI)
	case "taskId":
		return text(&p.TaskID)
	case "arguments":
		p.Arguments = value
	case "_meta":
		if jsonx.TypeOf(value) != "object" {
			return jsonx.TypeOf(value) + ", not an object"
		}
		p.Meta = value
	case "cursor":
		p.Cursor = value
	default:
		p.Retry = true
	}
	return ""
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

// EditMeta returns params with the given edits made to its `_meta`. Everything
// else keeps its bytes. A `_meta` that ends up empty and was not there before is
// not added.
func EditMeta(params []byte, edits ...jsonx.Edit) []byte {
	meta, had := jsonx.Get(params, "_meta")
	edited := jsonx.Apply(meta, edits...)
	if !had && bytes.Equal(edited, []byte("{}")) {
		return params
	}
	if had && bytes.Equal(edited, meta) {
		return params
	}
	return jsonx.Set(params, "_meta", edited)
}

// ResultType returns the `resultType` of a result; absent means complete.
func ResultType(result []byte) string {
	v, ok := jsonx.Get(result, "resultType")
	if !ok {
		return ResultComplete
	}
	s, _ := jsonx.Text(v)
	return s
}

// Freshness is how long and for whom a result may be kept.
type Freshness struct {
	TTL    time.Duration // 0: not at all
	Public bool          // may be shared across authorization contexts
	Stated bool          // the server said so itself
}

// maxTTL keeps absurd values from overflowing: nobody keeps a result for longer.
const maxTTL = 365 * 24 * time.Hour

// ReadFreshness reads ttlMs and cacheScope of a result. Absent, negative and
// unreadable ttlMs mean 0; an absent scope means private.
func ReadFreshness(result []byte) Freshness {
	var f Freshness
	for m := jsonx.Object(result); m.Next(); {
		switch string(m.Key) {
		case "ttlMs":
			ms, err := strconv.ParseFloat(string(m.Value), 64)
			if err != nil || ms <= 0 {
				continue
			}
			f.Stated = true
			f.TTL = maxTTL
			if ms < float64(maxTTL/time.Millisecond) {
				f.TTL = time.Duration(ms * float64(time.Millisecond))
			}
		case "cacheScope":
			s, _ := jsonx.Text(m.Value)
			f.Public = s == "public"
		}
	}
	return f
}

// Describe names a request for messages to people: method and what it is about.
func (p *Params) Describe(method string) string {
	if name, ok := p.NameFor(method); ok {
		return fmt.Sprintf("%s %s", method, name)
	}
	return method
}
