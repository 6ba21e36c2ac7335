package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// notFoundError is exec.ErrNotFound with a next step.
type notFoundError struct {
	command string
	path    string // where it was looked for, when it was not looked up
}

func (e *notFoundError) Error() string {
	if e.path != "" {
		return fmt.Sprintf("command %q not found: there is no %s; install it or correct the path", e.command, e.path)
	}
	return fmt.Sprintf("command %q not found on PATH; install it or give a full path", e.command)
}

func (e *notFoundError) Is(target error) bool {
	return target == exec.ErrNotFound || (e.path != "" && target == fs.ErrNotExist)
}

// lookPath finds command as the child would: on the PATH of env, not of this
// process, and relative paths from dir. Relative entries of PATH are passed over,
// since a program must not depend on what lies in the working directory.
func lookPath(command string, env []string, dir string) (string, error) {
	if strings.ContainsRune(command, '/') || strings.ContainsRune(command, filepath.Separator) {
		return lookFile(command, env, dir)
	}
	denied := ""
	for _, entry := range filepath.SplitList(variable(env, "PATH")) {
		if !filepath.IsAbs(entry) {
			continue
		}
		path, err := executable(filepath.Join(entry, command), env)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, fs.ErrPermission) && denied == "" {
			denied = filepath.Join(entry, command)
		}
	}
	if denied != "" {
		return "", notExecutable(command, denied)
	}
	return "", &notFoundError{command: command}
}

func lookFile(command string, env []string, dir string) (string, error) {
	path := command
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	found, err := executable(path, env)
	switch {
	case err == nil:
		return found, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", &notFoundError{command: command, path: path}
	case errors.Is(err, fs.ErrPermission):
		return "", notExecutable(command, path)
	}
	return "", fmt.Errorf("command %q: %w", command, err)
}

func notExecutable(command, path string) error {
	return fmt.Errorf("command %q: %s may not be executed; make it executable (chmod +x) or name another program: %w",
		command, path, fs.ErrPermission)
}

// executable returns the file that path stands for, fs.ErrNotExist when there is
// none and fs.ErrPermission when it may not be executed.
func executable(path string, env []string) (string, error) {
	err := error(fs.ErrNotExist)
	for _, candidate := range candidates(path, env) {
		info, statErr := os.Stat(candidate)
		if statErr != nil {
			if !errors.Is(statErr, fs.ErrNotExist) {
				err = statErr
			}
			continue
		}
		if info.IsDir() || !executableMode(info.Mode()) {
			err = fs.ErrPermission
			continue
		}
		return candidate, nil
	}
	return "", err
}
