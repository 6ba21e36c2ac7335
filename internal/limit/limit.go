// Package limit is the table of limits on everything that an untrusted party can
// make grow: an MCP server, a client without or with a narrow token, an
// authorization server, a browser.
//
// The constants are used by the packages that enforce them. [Table] lists them for
// docs/security.md, each with the test that exceeds it; a test in test/rules fails
// when a constant has no row or a row names a test that does not exist. The
// package enforces nothing itself and imports nothing of ours.
package limit

import "slices"

// Row is one limit as docs/security.md shows it.
type Row struct {
	// Name is the constant's name in this package.
	Name string
	// Who can make it grow: "server", "client", "authorization server" or "browser".
	Who string
	// What is counted.
	What string
	// Value is the constant itself: an int or a time.Duration.
	Value any
	// Unit is "bytes" for sizes and empty for counts and durations.
	Unit string
	// Then says what happens to what exceeds the limit.
	Then string
	// Test is the test that exceeds the limit, as "package.TestName".
	Test string
}

// Table returns all limits, by who can make them grow.
func Table() []Row {
	return slices.Concat(serverRows(), definitionRows(), clientRows(), loginRows(), accountRows())
}
