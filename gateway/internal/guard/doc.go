// Package guard refuses requests that a web page could make a browser send: requests
// addressed to a host name that is not the gateway's (DNS rebinding), and requests of
// foreign origins.
//
//	g := guard.New(hosts, origins)
//	if status, reason := g.Refuses(r); status != 0 { … }
//
// It reads headers only and knows nothing of authentication.
package guard
