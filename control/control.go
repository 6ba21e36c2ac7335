// Package control lets the command line query and control running usher processes.
//
// There is no daemon: every long-running usher process listens on its own socket,
// run/<pid>.sock under its home directory, and a command asks all of them. The
// protocol is HTTP over that socket; the handler comes from the embedding package.
//
// The package owns who may connect: the directory is 0700, the socket 0600, and
// the peer must be the same user. It owns the names of the sockets, and removes
// those whose owner is gone. [Listen] opens a socket with the same checks at a path of
// the user's choice, for a gateway that only this user reaches.
package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxSocketPath is how long the path of a socket may be on the systems we run on.
const maxSocketPath = 100

// Server is a control socket that is being served.
type Server struct {
	path string
	http *http.Server
	wg   sync.WaitGroup
	once sync.Once
}

// Serve listens on the socket of this process in dir and answers with h. Close it.
func Serve(dir string, h http.Handler) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := private(dir); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	path := filepath.Join(dir, strconv.Itoa(os.Getpid())+".sock")
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("control socket: the path %s is too long for a socket; set USHER_HOME to a shorter one", path)
	}
	l, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s := &Server{path: path, http: &http.Server{Handler: h, ConnContext: withPeer, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}}
	s.wg.Go(func() { _ = s.http.Serve(&guarded{Listener: l}) }) // it ends with Close
	return s, nil
}

// listen makes the socket under another name first, so that nobody finds it before
// it is listened on.
func listen(path string) (net.Listener, error) {
	early := strings.TrimSuffix(path, ".sock") + ".new"
	if err := os.Remove(early); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: early})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it is renamed; Close removes it
	if err = os.Chmod(early, 0o600); err == nil {
		err = os.Rename(early, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(early))
	}
	return l, nil
}

// private refuses a directory that others may enter: they could plant sockets.
func private(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is open to others; run: chmod 700 %s", dir, dir)
	}
	return nil
}

// Path is where the socket is.
func (s *Server) Path() string { return s.path }

// Close ends all conversations and removes the socket.
func (s *Server) Close() error {
	var err error
	s.once.Do(func() {
		err = s.http.Close()
		s.wg.Wait()
		if rm := os.Remove(s.path); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
			err = errors.Join(err, rm)
		}
	})
	return err
}

// Peer is a running usher that can be asked.
type Peer struct {
	PID  int
	path string
}

// Peers finds the running usher processes whose sockets are in dir, in the order of their
// process ids. Sockets that nobody listens on any more are removed.
func Peers(ctx context.Context, dir string) ([]Peer, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find running usher processes: %w", err)
	}
	var peers []Peer
	for _, f := range files {
		name, isSocket := strings.CutSuffix(f.Name(), ".sock")
		pid, err := strconv.Atoi(name)
		if !isSocket || err != nil {
			continue
		}
		p := Peer{PID: pid, path: filepath.Join(dir, f.Name())}
		c, err := p.dial(ctx)
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(p.path) // its owner was killed
			continue
		}
		if err != nil {
			continue // it is slow, or going away
		}
		_ = c.Close()
		peers = append(peers, p)
	}
	return peers, nil
}

func (p Peer) dial(ctx context.Context) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	var d net.Dialer
	return d.DialContext(ctx, "unix", p.path)
}

// Do sends a request to the peer; path is such as "/status". The caller closes the
// body. An answer other than 200 is an error with the peer's words.
func (p Peer) Do(ctx context.Context, method, path string) (*http.Response, error) {
	return p.DoWith(ctx, method, path, nil)
}

// DoWith is [Peer.Do] with headers.
func (p Peer) DoWith(ctx context.Context, method, path string, header http.Header) (*http.Response, error) {
	client := &http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx) },
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://usher"+path, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask usher with pid %d: %w", p.PID, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, answerError(p.PID, resp)
}
