//go:build unix

package config

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the uid a file belongs to.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
