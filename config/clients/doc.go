// Package clients reads and writes the MCP server lists of other programs:
// editors, agents and desktop clients.
//
// It owns where each client keeps its file, the shape of an entry in it, and
// the client's dialect of interpolation. It never executes or connects, and of a
// client's own file it writes one entry, ours, after keeping the file as it was.
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
// The flow of a link:
//
//	Links.Link         the entry in the client's words, spliced into the text of
//	                   its file; what else the file says is compared before and
//	                   after, and a file that cannot be edited so is refused
//	Change.Apply       keeps the file and a record, then writes
//	Links.Unlink       the file as it was, if nobody has touched it since; else
//	                   our entry alone is taken out
//
// A client is a row in the table of table.go: its places, its key, its
// reader and its writer. Adding one means adding a row.
package clients
