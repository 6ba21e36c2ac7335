package policy

import (
	"crypto/sha256"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// unsaid are the members of `_meta` that say nothing about what is asked: they
// differ from call to call, or say who asks and where the answer is to be told.
var unsaid = []jsonx.Edit{
	{Key: mcp.MetaVersion},
	{Key: mcp.MetaClientInfo},
	{Key: mcp.MetaLogLevel},
	{Key: mcp.MetaProgress},
	{Key: mcp.MetaTraceParent},
	{Key: mcp.MetaTraceState},
	{Key: mcp.MetaBaggage},
}

// paramsSum identifies params whatever their order and spacing. It is false when
// they have no single meaning, or carry answers to a server's questions: such
// requests are never answered from the cache.
func paramsSum(params []byte) (sum [32]byte, ok bool) {
	if params == nil {
		return sha256.Sum256([]byte("{}")), true
	}
	p, err := mcp.ReadParams(params)
	if err != nil || p.Retry {
		return sum, false
	}
	if p.Meta != nil {
		params = leanMeta(params, p.Meta)
	}
	form, cerr := jsonx.Canonical(params)
	if cerr != nil {
		return sum, false
	}
	return sha256.Sum256(form), true
}

// leanMeta leaves out what is unsaid, and a `_meta` that is then empty.
func leanMeta(params, meta []byte) []byte {
	if _, dup := jsonx.Duplicate(meta); dup {
		return params // refused as ambiguous later on
	}
	lean := jsonx.Apply(meta, unsaid...)
	for m := jsonx.Object(lean); m.Next(); {
		return jsonx.Set(params, "_meta", lean)
	}
	return jsonx.Delete(params, "_meta")
}
