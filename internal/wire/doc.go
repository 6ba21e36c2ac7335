// Package wire is the MCP envelope as raw JSON-RPC.
//
// A message is read once ([Parse]): ids, method, params, result and error are cut
// out as the bytes they are, case-sensitively, and an envelope that two readers
// could understand differently (duplicate or case-variant members) is refused.
// What is inside params and results stays untouched; [ReadParams] looks at the few
// members a host must know, [EditMeta] splices `_meta`.
//
// The package also owns the names of the protocol (methods, versions, error codes,
// `_meta` keys, headers), the header encoding, and the two framings: newline
// delimited ([Lines]) and server-sent events ([Events]), both with bounds.
//
// It owns no connection and no goroutine.
package wire
