// Package stream writes to clients: the reply to one POST, which becomes an event stream
// when something has to be said before the answer; queues of messages that belong to no
// request; and the replay of a stream whose connection broke.
//
//	p := stream.NewReply(w, r, keepAlive, &quota, principal, nil)
//	p.Send(notification)
//	p.Finish(http.StatusOK, response)
//
// Guarantees: Send never blocks, and what waits for a client that does not read is limited
// for each queue and, by a [ByteQuota], for each principal and for all of them. Messages
// pass as the bytes they are.
package stream
