//go:build unix

package sqlstore

import (
	"errors"
	"os"
	"syscall"
)

// dropPrivileges makes a process of root one of nobody.
func dropPrivileges() error {
	if os.Geteuid() != 0 {
		return nil
	}
	const nobody = 65534
	return errors.Join(syscall.Setgid(nobody), syscall.Setuid(nobody))
}
