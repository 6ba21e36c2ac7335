package keys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/usher-mcp/usher/vault"
)

// filePlace keeps the key in a file that only its owner can read.
type filePlace struct {
	path string
	ours bool // ours to remove; another file belongs to the user who named it
}

func (p *filePlace) name() string { return "file:" + p.path }

func (p *filePlace) trouble(err error) error {
	next := "restore the file from a backup; without it the store's secrets cannot be opened"
	switch {
	case errors.Is(err, vault.ErrExposed):
		next = "chmod 600 " + p.path
	case !errors.Is(err, fs.ErrNotExist):
		next = "check the file, its owner and its mode"
	}
	return &Error{Place: p.name(), Kind: vault.ErrNoKey, Err: err, Next: next}
}

func (p *filePlace) find(_ context.Context, r *ring) ([]byte, error) {
	master, err := readKeyFile(p.path)
	if err != nil {
		return nil, p.trouble(err)
	}
	if !r.has(lockID(master)) {
		return nil, elsewhere(p.name(), r)
	}
	return master, nil
}

func (p *filePlace) first(context.Context) (made, error) {
	master, err := readKeyFile(p.path)
	if err == nil {
		return madeOf(p.name(), master), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return made{}, p.trouble(err)
	}
	m := newMade(p.name())
	if err := writeKeyFile(p.path, m.master); err != nil {
		return made{}, p.trouble(err)
	}
	return m, nil
}

// next takes a key that somebody has put there for the purpose, else makes one
// that replaces the file.
func (p *filePlace) next(_ context.Context, r *ring) (made, error) {
	master, err := readKeyFile(p.path)
	if err == nil && !r.has(lockID(master)) {
		return madeOf(p.name(), master), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return made{}, p.trouble(err)
	}
	m := newMade(p.name())
	m.put = func(context.Context) error {
		if err := writeKeyFile(p.path, m.master); err != nil {
			return p.trouble(err)
		}
		return nil
	}
	return m, nil
}

func (p *filePlace) forget(_ context.Context, l ringLock) string {
	master, err := readKeyFile(p.path)
	if err != nil || lockID(master) != l.ID {
		return "" // it was replaced, or is gone already
	}
	if p.ours && os.Remove(p.path) == nil {
		return ""
	}
	return "the key in " + p.name() + " is no longer used; remove the file"
}

// maxKeyFile is far more than a key takes.
const maxKeyFile = 4096

// readKeyFile refuses a file that others can read, except a mounted secret.
func readKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 && !mountedSecret(info) {
		return nil, fmt.Errorf("%w: %s has mode %04o", vault.ErrExposed, path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, err
	}
	key, err := parseKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// writeKeyFile makes or replaces the file: there is always the old or the new
// one, whole and on the disk.
func writeKeyFile(path string, key []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	part, err := os.CreateTemp(dir, filepath.Base(path)+".part-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = io.WriteString(part, encodeKey(key)+"\n")
	if err = errors.Join(err, part.Sync(), part.Close()); err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	if runtime.GOOS == "windows" {
		return nil // directories cannot be opened there, and names are durable
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
