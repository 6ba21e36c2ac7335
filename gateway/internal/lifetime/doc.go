// Package lifetime ends what a client opened when the client's credential does.
//
//	ctx := registry.Bind(r.Context(), credential, expires) // the context of one request
//	defer ctx.Release()
//	use := lifetime.Of(ctx).Hold(func(cause error) { … })  // something that outlives the request
//
// Revoke ends everything a credential is used for, with [ErrRevoked]; a use whose
// credential expires ends with [ErrExpired]. A credential stays refused for a while after
// it was revoked, because an authenticator may still have it in a cache.
//
// The package does not authenticate, which is authn's, and does not know sessions: the
// gateway finds those by their credential.
package lifetime
