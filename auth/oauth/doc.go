// Package oauth is a stateless OAuth client for MCP servers: every function asks an
// authorization server and returns what it said. It stores nothing.
//
// To log in, make a [Client] for the server ([NewClient] with [BoundsOf] its
// definition) and call [Client.Discover]. The [Provider] it returns has the endpoints,
// the resource parameter and the metadata. Then find out as which OAuth client to log in
// ([ConfiguredClient], else [Client.Register]), send the user to
// [Provider.AuthorizeURL] or to the page of [Client.AuthorizeDevice], read what comes
// back with [ReadCallback] or [ParsePaste], and exchange it with
// [Client.RequestToken]. Without a user, [Client.MachineForm] makes the token request.
//
// Guarantees:
//
//   - Documents and addresses found during discovery come from strangers. The fetch guard
//     (guard.go) decides on the resolved address, when the connection is made, so that
//     they cannot lead requests to private networks or to other ports of this machine.
//   - Requests with secrets follow no redirect and are sent once; a repeat is the
//     caller's decision. [TokenRequest.BeforeSend] can still stop a request when its
//     connection is open.
//   - No error holds a secret, an address with its query, or a body that a server sent,
//     except an error code and a description that were checked for secrets.
//   - Sizes are limited by internal/limit.
//
// Discovery is in discover.go, metadata.go and resource.go; exceptions for known
// providers are data in providers.go; token requests are in token.go and response.go;
// DPoP and signed assertions are in dpop.go and jwt.go.
//
// The package does not own grants, their refresh or pending logins (auth), nor the
// callback listener (auth/loopback).
package oauth
