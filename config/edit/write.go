package edit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/jsonc"
)

// Update edits a file: it reads it, calls edit, and writes the result in one
// step, so that a crash leaves the old or the new text. A file that is absent
// starts empty and is made with mode 0600; one that does not parse is left
// alone. It reports whether anything was written. A file that somebody else
// changes at the same time is read and edited again.
func Update(path string, edit func(*Document) error) (changed bool, err error) {
	const tries = 3
	for range tries {
		changed, err = updateOnce(path, edit)
		if !errors.Is(err, ErrRaced) {
			return changed, err
		}
	}
	return false, fmt.Errorf("edit %s: %w; try again", path, err)
}

// ErrRaced says that a file was not written, for it was changed meanwhile.
var ErrRaced = errors.New("the file keeps changing while it is edited")

func updateOnce(path string, edit func(*Document) error) (bool, error) {
	before, err := readForEdit(path)
	if err != nil {
		return false, err
	}
	doc, err := Parse(path, before)
	if err != nil {
		return false, err
	}
	start := doc.Bytes()
	if err := edit(doc); err != nil {
		return false, err
	}
	if bytes.Equal(doc.Bytes(), start) {
		return false, nil
	}
	unchanged := func() bool {
		now, err := readForEdit(path)
		return err == nil && bytes.Equal(now, before)
	}
	return true, WriteFile(path, doc.Bytes(), unchanged)
}

// readForEdit returns nothing for a file that is not there.
func readForEdit(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, config.MaxFileBytes+1))
	if err == nil && len(b) > config.MaxFileBytes {
		err = &jsonc.Error{File: path, Msg: fmt.Sprintf("is larger than %d bytes", config.MaxFileBytes)}
	}
	return b, err
}

// followLinks returns the file behind a symbolic link, which may not exist
// yet, so that a link into a dotfiles directory stays a link.
func followLinks(path string) (string, error) {
	const most = 40
	for range most {
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil // not a link, or not there
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", fmt.Errorf("edit %s: too many symbolic links", path)
}

// WriteFile replaces a file durably: temporary file, sync, rename, sync of the
// directory. The mode of an existing file is kept, a new one has 0600 and its
// directories 0700; of a symbolic link the file behind it is written. still,
// unless nil, is asked last whether to go on; if not, the error is ErrRaced.
func WriteFile(path string, text []byte, still func() bool) (err error) {
	if path, err = followLinks(path); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	info, statErr := os.Stat(path)
	if statErr == nil {
		mode = info.Mode().Perm()
	}
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close() // closed already, or beyond help
			_ = os.Remove(tmp.Name())
		}
	}()
	if _, err := tmp.Write(text); err != nil {
		return err
	}
	if err := tmp.Chmod(mode); err != nil {
		return err
	}
	if statErr == nil {
		keepOwner(tmp, info)
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if still != nil && !still() {
		return ErrRaced
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}
