//go:build linux

package control

import (
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
