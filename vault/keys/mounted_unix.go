//go:build unix

package keys

import (
	"io/fs"
	"os"
	"syscall"
)

// mountedSecret reports whether a file is a secret as Kubernetes mounts it into a
// container that does not run as root: it belongs to root, and is readable by a group
// of this process (fsGroup) and nobody else.
func mountedSecret(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && rootsSecret(info.Mode().Perm(), st.Uid, os.Geteuid())
}

func rootsSecret(mode fs.FileMode, owner uint32, user int) bool {
	return owner == 0 && user != 0 && mode&^0o640 == 0
}
