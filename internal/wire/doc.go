// Package wire holds how MCP messages travel: the framing of lines ([Lines]) and
// server-sent events ([Events]), HTTP headers and their encoding, WWW-Authenticate
// challenges, and edits of `_meta` ([EditMeta]). All readers are limited in size.
//
// The messages themselves are in package mcp. The package has no connections and no
// goroutines.
package wire
