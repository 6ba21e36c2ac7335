// Package oidc proves the login engine against an authorization server that
// nobody here wrote: oidc-provider, a certified one, from npm.
//
// It owns provider.mjs, which runs that server on loopback with what the engine
// uses turned on (open registration and its management, PKCE, resource
// indicators, rotation of refresh tokens, device codes, revocation,
// introspection), and the tests. It refuses to own odd behaviour: the misdeeds of
// authorization servers are acted out by internal/fake and tested in auth.
//
// The flow: one Node process serves all tests; each has an engine, a store and a
// protected MCP server of its own. A browser of plain HTTP fills in the server's
// pages. The MCP server asks the authorization server about each token
// (RFC 7662), so a token that works is one the authorization server stands for.
// What happens there is printed as lines of JSON, which tests look at.
package oidc
