package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"modernc.org/sqlite"

	"github.com/usher-mcp/usher/vault"
)

const (
	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700
)

// companions are the files SQLite keeps beside the database; they hold parts of
// it and get its mode.
func companions(path string) []string {
	return []string{path, path + "-wal", path + "-shm", path + "-journal"}
}

// prepareFile makes the directory and the file if they are not there, and
// refuses those that others can get at.
func prepareFile(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return unwritable(err)
	}
	if err := privateDir(dir); err != nil {
		return err
	}
	for _, file := range companions(path) {
		if err := privateFile(file); err != nil {
			return err
		}
	}
	// Only the database is made here: SQLite would make it readable for all.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return unwritable(err)
	}
	if err := f.Close(); err != nil {
		return unwritable(err)
	}
	return syncDirs(dir, filepath.Dir(dir))
}

// syncDirs makes new names in the directories outlast a power failure.
func syncDirs(dirs ...string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be opened there, and names are durable
	}
	for _, dir := range dirs {
		d, err := os.Open(dir)
		if errors.Is(err, fs.ErrPermission) {
			continue // the parent may be one we can only pass through; then it is not ours to sync
		}
		if err != nil {
			return unwritable(err)
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return unwritable(err)
		}
	}
	return nil
}

func unwritable(err error) error {
	return fmt.Errorf("%w: %w (check the owner and mode of the directory, or set `store` to another place)",
		vault.ErrUnavailable, err)
}

// privateDir refuses a directory in which others can exchange files. Others may
// be able to list it: the files themselves are closed.
func privateDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return unwritable(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: directory %s has mode %04o (run: chmod 700 %s)",
			vault.ErrExposed, dir, info.Mode().Perm(), dir)
	}
	return nil
}

// privateFile refuses a file that others can read or write. It must not open
// it: closing it again would drop the locks SQLite has on it in this process.
func privateFile(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unwritable(err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is not a regular file (set another `store`)", vault.ErrInvalid, path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%w: %s has mode %04o (run: chmod 600 %s)",
			vault.ErrExposed, path, info.Mode().Perm(), path)
	}
	return nil
}

// confirmed takes a second look, with nothing kept from the first: a disk that
// failed to read once makes SQLite take a sound file for a damaged one.
func (s *Store) confirmed(ctx context.Context) bool {
	connector, err := sqlite.NewConnector(sqliteDSN(s.path))
	if err != nil {
		return true
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }() // only read from
	var verdict string
	err = db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict)
	if err != nil {
		return classifySQLite(err) == problemDamaged
	}
	return verdict != "ok"
}

// damaged keeps a copy of the files, once, and makes the store refuse writes:
// writing to a damaged file makes it worse.
func (s *Store) damaged(cause error) *vault.CorruptError {
	found := &vault.CorruptError{Path: s.path, Err: cause}
	if !s.broken.CompareAndSwap(nil, found) {
		return s.broken.Load()
	}
	kept, err := keepCopy(s.path)
	if err != nil {
		kept = ""
		cause = fmt.Errorf("%w; no copy could be kept: %w", cause, err)
	}
	found = &vault.CorruptError{Path: s.path, Copy: kept, Err: cause}
	s.broken.Store(found)
	return found
}

// keepCopy copies the database and its log beside them. The name comes from the
// time of the last change, so that opening a damaged file over and over does
// not fill the disk with copies.
func keepCopy(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	base := path + ".corrupt-" + info.ModTime().UTC().Format("20060102T150405.000Z")
	if err := copyFile(path, base); err != nil {
		return "", err
	}
	if err := copyFile(path+"-wal", base+"-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return base, nil
}

// copyFile makes a durable private copy; an existing one stays. The copy gets
// its name when it is whole.
func copyFile(from, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()                                         // only read from
	part, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".part-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = io.Copy(part, in)
	if err = errors.Join(err, part.Sync(), part.Close()); err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return os.Rename(part.Name(), to)
}
