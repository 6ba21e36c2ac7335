package wire

import (
	"bytes"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// EditMeta returns params with the given edits made to its `_meta`. Everything
// else keeps its bytes but for white space between members. A `_meta` that ends up
// empty and was not there before is not added. Params that are not an object become one.
func EditMeta(params []byte, edits ...jsonx.Edit) []byte {
	if len(edits) == 0 && jsonx.TypeOf(params) == "object" {
		return params
	}
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
