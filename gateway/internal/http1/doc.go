// Package http1 serves the requests that agents make over and over, POSTs over plain
// HTTP/1.1, with less work than net/http.
//
// It owns connections for as long as nothing else comes on them. It refuses to own HTTP
// as a whole: the first request of any other kind, and everything that is not written
// as plainly as can be, goes to net/http, with the connection and every byte that was
// read of it. So what is wrong, rare or old is answered by net/http as ever, and what is
// read here is only what both read in the same way.
//
// Why: net/http starts a goroutine permanentlyy request that waits for the agent to leave,
// and ends it with the answer. Most calls are over before anybody could have left, and
// two goroutines that wait for each other get into the way of others.
//
// Flow: server.go accepts, conn.go reads a head (head.go), has the handler answer
// (exchange.go, response.go) and looks whether the agent is still there (watch.go) when
// that takes its time.
package http1
