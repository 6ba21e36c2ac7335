package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/usher-mcp/usher/config/jsonc"
)

// MaxFileBytes bounds a configuration file.
const MaxFileBytes = 4 << 20

// readConfig reads a file that definitions are taken from. A user file or a
// --config file that somebody else could have written is refused; for a
// project file, whose servers are held back anyway, that is a warning.
func readConfig(path string, layer Layer) ([]byte, []jsonc.Warning, error) {
	// Looked at before it is opened, since opening a pipe would wait. Process
	// substitution and /dev/stdin are fine where a person named them.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && (layer != LayerFlag || info.IsDir()) {
		return nil, nil, &jsonc.Error{File: path, Msg: "is not a regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, openError(path, layer, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, &jsonc.Error{File: path, Msg: "cannot be examined: " + errText(err), Err: err}
	}
	var warnings []jsonc.Warning
	if bad := checkPermissions(path, info); bad != nil {
		if layer != LayerProject {
			return nil, nil, bad
		}
		warnings = append(warnings, jsonc.Warning{File: path, Msg: bad.Msg + "; " + bad.Hint})
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, warnings, &jsonc.Error{File: path, Msg: "cannot be read: " + errText(err), Err: err}
	}
	if len(text) > MaxFileBytes {
		return nil, warnings, &jsonc.Error{File: path, Msg: fmt.Sprintf("is larger than %d bytes", MaxFileBytes)}
	}
	return bytes.TrimPrefix(text, []byte(jsonc.BOM)), warnings, nil
}

func openError(path string, layer Layer, err error) error {
	e := &jsonc.Error{File: path, Msg: "cannot be opened: " + errText(err), Err: err}
	if errors.Is(err, fs.ErrNotExist) && layer == LayerFlag {
		e.Msg, e.Hint = "there is no such file", "usher add NAME URL --config FILE makes one"
	}
	if errors.Is(err, fs.ErrPermission) {
		e.Hint = "chmod u+r " + path
	}
	return e
}

// errText leaves out the path that *fs.PathError repeats.
func errText(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// checkPermissions refuses a file that others could have written, as ssh does.
func checkPermissions(path string, info fs.FileInfo) *jsonc.Error {
	if !info.Mode().IsRegular() {
		return nil
	}
	owner, known := ownerOf(info)
	if bad := checkMode(path, info.Mode(), owner, os.Geteuid(), known); bad != nil {
		return bad
	}
	dir := filepath.Dir(path)
	if d, err := os.Stat(dir); err == nil && known && d.Mode().Perm()&0o002 != 0 && d.Mode()&fs.ModeSticky == 0 {
		return &jsonc.Error{File: path, Msg: "anyone can replace it, for its directory is writable by all", Hint: "chmod o-w " + dir}
	}
	return nil
}

// checkMode decides on mode and owner alone. known is false where the system
// has no such owners.
func checkMode(path string, mode fs.FileMode, owner, self int, known bool) *jsonc.Error {
	switch {
	case !known:
		return nil
	case owner != self && owner != 0:
		return &jsonc.Error{
			File: path, Msg: fmt.Sprintf("belongs to another user (uid %d), who could start programs as you", owner),
			Hint: "chown it, or copy it to a file of your own",
		}
	case mode.Perm()&0o002 != 0:
		return &jsonc.Error{File: path, Msg: fmt.Sprintf("anyone can write it (mode %04o)", mode.Perm()), Hint: "chmod go-w " + path}
	case mode.Perm()&0o020 != 0:
		return &jsonc.Error{File: path, Msg: fmt.Sprintf("its group can write it (mode %04o)", mode.Perm()), Hint: "chmod go-w " + path}
	}
	return nil
}
