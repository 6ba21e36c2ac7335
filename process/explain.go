package process

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// explain says what a refusal to execute path means, since the file itself was
// found before.
func explain(path string, err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err
	}
	switch {
	case errno == syscall.ENOEXEC:
		return fmt.Errorf("%s is not a program for this machine, or a script without a #! line; check the file: %w", path, errno)
	case errno == syscall.E2BIG:
		return fmt.Errorf("arguments and environment are too large; shorten them: %w", errno)
	case errors.Is(errno, fs.ErrNotExist):
		return fmt.Errorf("the interpreter that %s names in its first line is missing; install it: %w", path, errno)
	case errors.Is(errno, fs.ErrPermission):
		return fmt.Errorf("%s may not be executed; check the permissions of the file and of the working directory: %w", path, errno)
	}
	return fmt.Errorf("execute %s: %w", path, errno)
}
