// Package naming makes the names and addresses that clients see where several servers share
// one view.
//
// [Scheme] joins server, account and tool to a name that every client accepts, and no two
// tools get the same one. WithServer and SplitServer put the server into the URI of a
// resource and take it out again; [Template] compares URIs with a resource template.
package naming
