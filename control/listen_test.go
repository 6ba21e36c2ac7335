//go:build linux || darwin

package control

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shortDir is a directory whose path leaves room for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "usher")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestListen(t *testing.T) {
	path := filepath.Join(shortDir(t), "run", "gateway.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", name, info.Mode().Perm(), err, want)
		}
	}
	greeted := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.WriteString(c, "hello")
			_ = c.Close()
		}
		greeted <- err
	}()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(c); string(text) != "hello" {
		t.Errorf("the same user was told %q", text)
	}
	_ = c.Close()
	if err := <-greeted; err != nil {
		t.Error(err)
	}
	if _, err := Listen(path); !errors.Is(err, ErrInUse) {
		t.Errorf("a second listener: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket of the first is gone: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is still there after Close")
	}
}

// A socket whose owner was killed is replaced, any other file is not.
func TestListenReplacesStaleSocket(t *testing.T) {
	dir := shortDir(t)
	stale := filepath.Join(dir, "stale.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	l, err := Listen(stale)
	if err != nil {
		t.Fatalf("a stale socket: %v", err)
	}
	_ = l.Close()
	file := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(file); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file: %v", err)
	}
	if text, _ := os.ReadFile(file); string(text) != "mine" {
		t.Error("the file was changed")
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestListenRefusesDirectories(t *testing.T) {
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(filepath.Join(dir, "a.sock")); err == nil || !strings.Contains(err.Error(), "open to others") {
		t.Errorf("a directory open to others: %v", err)
	}
	if _, err := Listen(filepath.Join(dir, strings.Repeat("x", maxSocketPath))); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a long path: %v", err)
	}
	if os.Getuid() == 0 {
		if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(filepath.Join(dir, "a.sock")); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Errorf("another user's directory: %v", err)
		}
	}
}
