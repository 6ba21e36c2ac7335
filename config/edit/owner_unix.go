//go:build unix

package edit

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a rewritten file back to whom it belonged. Only root can;
// for anybody else the file is their own anyway.
func keepOwner(f *os.File, info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}

// syncDir makes a rename durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
