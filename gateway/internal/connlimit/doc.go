// Package connlimit is a listener that limits how many connections clients hold open.
//
//	l = connlimit.New(l, 4096)
//	srv := &http.Server{Handler: connlimit.TrackRequests(h), ConnContext: connlimit.ConnContext}
//	connlimit.Authenticated(r.Context(), principal) // once a request is authenticated
//
// Guarantees: connections on which no client has authenticated have a small budget of
// their own, and idle ones are closed in favour of new ones, so that neither many
// addresses nor one principal lock the others out.
package connlimit
