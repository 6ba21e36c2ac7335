package control

import (
	"context"
	"net"
	"net/http"
)

// What a request carries that asks for something only a person may have. The handler
// decides what they are worth.
const (
	TerminalHeader = "Usher-Terminal" // "1": the asking command is at a terminal
	TokenHeader    = "Usher-Script-Token"
)

type peerKey struct{}

// withPeer keeps the process id of the peer for the handler.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	if _, pid, err := peerOf(u); err == nil {
		ctx = context.WithValue(ctx, peerKey{}, pid)
	}
	return ctx
}

// PeerPID is the process id of the sender of a request, as the system tells it; 0 where
// it does not.
func PeerPID(r *http.Request) int {
	pid, _ := r.Context().Value(peerKey{}).(int)
	return pid
}

// Forbid answers a request that is not allowed to the peer.
func Forbid(w http.ResponseWriter, err error) { http.Error(w, err.Error(), http.StatusForbidden) }
