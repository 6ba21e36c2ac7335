//go:build linux

package control

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestStrangerIsRefused lets another user connect, directory and socket opened up
// for it: the peer check alone must hold.
func TestStrangerIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("only root can become another user; the peer check is not shown here")
		return
	}
	dir, err := os.MkdirTemp("/tmp", "control")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	run := filepath.Join(dir, "run")
	asked := make(chan struct{}, 1)
	s := serve(t, run, func(http.ResponseWriter, *http.Request) { asked <- struct{}{} })
	for path, mode := range map[string]os.FileMode{dir: 0o755, run: 0o755, s.Path(): 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(copySelf(t, dir))
	cmd.Env = []string{strangerEnv + "=" + s.Path()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the stranger could not even connect: %v, %s", err, out)
	}
	select {
	case <-asked:
		t.Errorf("a stranger was answered: %s", out)
	default:
	}
}

// TestListenRefusesStrangers is the same for a socket of the user's choice.
func TestListenRefusesStrangers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("only root can become another user; the peer check is not shown here")
		return
	}
	dir := shortDir(t)
	path := filepath.Join(dir, "run", "gateway.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 2)
	go func() {
		defer close(accepted)
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			accepted <- c
			_ = c.Close()
		}
	}()
	for name, mode := range map[string]os.FileMode{dir: 0o755, filepath.Dir(path): 0o755, path: 0o777} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	run := func(uid uint32) {
		cmd := exec.Command(copySelf(t, dir))
		cmd.Env = []string{strangerEnv + "=" + path}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("user %d could not even connect: %v, %s", uid, err, out)
		}
	}
	run(65534)
	run(0)
	_ = l.Close()
	n := 0
	for range accepted {
		n++
	}
	if n != 1 {
		t.Errorf("%d connections were accepted, want root's alone", n)
	}
}

// copySelf puts the test binary where another user can run it.
func copySelf(t *testing.T, dir string) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "stranger")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
