// Package jsonx reads and edits JSON without giving up its bytes.
//
// A host moves JSON that it must not understand: unknown fields, integers above
// 2^53 and odd spacing have to arrive as they were sent. So this package never
// decodes into Go values. It walks raw bytes ([Object], [Array]), cuts members
// out ([Get]), splices members in ([Set], [Delete]), measures ([Extent]), finds names
// that stand twice ([Duplicate]), and makes the canonical form that hashes and cache
// keys are built on ([Canonical], [Hash]).
//
// It owns syntax only. What a member means is the business of internal/wire.
package jsonx
