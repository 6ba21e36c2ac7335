// Package surface is what an agent sees of all servers together.
//
// It owns the views ([View]): one server untouched, all servers directly under
// names of their own, all of them behind the one `mcp` tool, a profile; the names
// and addresses in them (internal/naming); and the choice between views by what they
// cost ([Surface.Auto]). Package search finds tools by words. It refuses to own the way to a server,
// which goes through policy, the protocol towards agents, which is gateway's, and
// logins, which it only starts ([Logins]). No view has a verb that adds, edits or
// approves a server.
//
// The flow of a list: what is known of each server (sources.go) → lists as prepared
// bytes, names resolved (snapshot.go, resources.go), made again only when something
// changed. Servers that were never seen are asked first, for a moment (learn.go);
// one that is down or late never fails a list.
//
// The flow of a call: the shown name leads to a server (direct.go, metaactions.go,
// single.go) → over which connection (lanes.go) → through the gate (forward.go) →
// the server's own bytes back.
//
// The flow of a change: [Surface.Notified] and events → the list is read again →
// every listener whose view is now another is told, once per burst (listen.go).
package surface
