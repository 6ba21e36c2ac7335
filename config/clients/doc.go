// Package clients reads and writes the MCP server lists of other programs:
// editors, agents and desktop clients.
//
// It owns where each client keeps its file, the shape of an entry in it, and
// the client's dialect of interpolation. It never executes or connects, and it
// writes no client's own file: Export only returns text.
//
// The flow of an import:
//
//	Find or ReadFile   file → tree → one entry per server → config.Server,
//	                   wrappers such as mcp-remote unwrapped, the dialect
//	                   turned into ours, what has no place kept as Foreign
//	NewPlan            the same server in several clients becomes one; two
//	                   accounts stay two; literal credentials leave before
//	                   anything is put into a project file
//	Plan.Preview       what the target file would hold
//	Plan.Apply         writes it, keeping the comments that are there
//
// A client is a row in the table of table.go: its places, its key, its
// reader and its writer. Adding one means adding a row.
package clients
