//go:build !linux && !darwin

package control

import (
	"io/fs"
	"net"
	"os"
)

// knowsPeers says that peerOf does not ask the kernel.
const knowsPeers = false

func ownedByUs(fs.FileInfo) bool { return false }

// peerOf trusts the permissions of directory and socket where the system cannot
// say who is at the other end.
func peerOf(*net.UnixConn) (uid, pid int, err error) { return os.Getuid(), 0, nil }
