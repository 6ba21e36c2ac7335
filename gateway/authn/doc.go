// Package authn authenticates the clients of a gateway.
//
//	tokens := authn.NewTokens(store)               // bearer tokens that usher mints
//	byJWT, err := authn.NewOIDC(authn.OIDCOptions{ // JWTs of an OIDC issuer
//		Issuer: "https://login.example.com", URL: "https://usher.example.com",
//	})
//	g := gateway.New(views, &gateway.Options{Auth: authn.AnyOf{tokens, byJWT}})
//
// A program with its own users implements [Authenticator]: it returns an [Identity], or
// a [*RefusedError] that says how to authenticate. One whose credentials can be revoked
// also implements [Watcher].
//
// Guarantees: a revoked token is refused within a second in every process that shares the
// store, and its sessions and streams end (see package gateway). Token secrets are stored
// as hashes only. Forged tokens cause one request to the issuer per interval at most.
//
// The package does not decide what an identity may call, which is policy's, nor what
// happens to open sessions, which is gateway's.
package authn
