// Package surface is what an agent sees of all servers together.
//
// It owns the search over tools ([Index]). The rest of the surface lives here too:
// the catalog view, the names under which tools of many servers are offered, the
// one `mcp` tool that stands for all of them, and the rendering that keeps within
// a number of tokens. It refuses to own the way to a server, which goes through
// policy, and the protocol towards agents, which is gateway's.
//
// The flow of a search: raw tool definitions, as the catalog remembers them →
// [NewIndex] → [Index.Search]. No connection is needed.
package surface
