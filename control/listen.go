package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ErrInUse is returned by [Listen] when a program listens on the socket already.
var ErrInUse = errors.New("another program listens on this socket")

// Listen listens on a Unix socket that only the same user and root can connect to:
// the socket is 0600, its directory must be the user's own and 0700 and is created if
// it is missing, and the kernel is asked who connects. A socket that nobody listens on
// any more is replaced. Closing the listener removes the socket.
//
// The error is [errors.ErrUnsupported] on systems that cannot tell who connects.
func Listen(path string) (net.Listener, error) {
	if !knowsPeers {
		return nil, fmt.Errorf("listen on a Unix socket: this system does not tell who connects: %w", errors.ErrUnsupported)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("listen on a Unix socket: %w", err)
	}
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("listen on %s: the path is longer than %d bytes, which is too long for a socket", path, maxSocketPath)
	}
	if err := ownDirectory(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil { // until now its directory has kept others out
		return nil, errors.Join(err, l.Close())
	}
	return &guarded{Listener: l, root: true}, nil
}

// ownDirectory makes sure that only this user can replace what is in dir.
func ownDirectory(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !ownedByUs(info) {
		return fmt.Errorf("the directory %s belongs to another user; choose one of your own", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the directory %s is open to others; choose one that is only yours (mode 0700)", dir)
	}
	return nil
}

// removeStale removes a socket whose owner was killed. It is renamed first, so that one
// that another program has opened meanwhile is not removed.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("there is a file of this name that is not a socket")
	}
	if err := answered(path); err != nil {
		return err
	}
	aside := path + "." + strconv.Itoa(os.Getpid())
	if err := os.Rename(path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := answered(aside); err != nil {
		return errors.Join(err, os.Rename(aside, path))
	}
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// answered is nil when nobody listens on a socket, and [ErrInUse] when somebody does.
func answered(path string) error {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = c.Close() // all there is to know
		return ErrInUse
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// guarded hands out only connections of the same user, and of root where it says so.
type guarded struct {
	net.Listener
	root bool
}

func (g *guarded) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid, _, err := peerOf(c.(*net.UnixConn))
		if err == nil && (uid == os.Getuid() || g.root && uid == 0) {
			return c, nil
		}
		_ = c.Close() // somebody else's; there is nothing to tell them
	}
}
