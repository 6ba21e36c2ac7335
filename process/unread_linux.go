package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// unread is how many bytes of a pipe nobody has read yet.
func unread(w *os.File) int {
	raw, err := w.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		if left, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil {
			n = left
		}
	})
	if err != nil {
		return 0 // it is closed
	}
	return n
}
