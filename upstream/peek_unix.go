//go:build unix

package upstream

import (
	"errors"
	"syscall"
)

// canPeek: whether the peer of an idle connection has left can be found out.
const canPeek = true

// nothingToRead reports whether a socket is open and nothing has come.
func nothingToRead(fd uintptr) bool {
	var one [1]byte
	_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK)
}
