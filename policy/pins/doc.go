// Package pins notices when a server changes its tools.
//
// An [Observer] compares each list of tools that a server sends with the pins of an
// account, pins what is new and says what changed. A [Store] is the view of a person
// or a command: list, diff, accept and forget pins. A [Lock] is the file with which a
// project agrees on its servers' tools; it is verified without a connection.
//
// The whole definition of a tool is pinned in a canonical form, members that nobody
// knows yet included: a model reads them all. Order and white space make no change. A
// definition that two readers could understand differently cannot be pinned. The
// package compares and keeps definitions; whether a changed tool may be called is
// decided by policy.
//
// All pins of one account at one server are one record (record.go): a list of tools
// costs one read and at most one write. Reading, comparing and diffing take time linear
// in the size of the definitions.
package pins
