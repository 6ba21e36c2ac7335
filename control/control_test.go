package control

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// strangerEnv makes the test binary connect to a socket, as another user would.
const strangerEnv = "USHER_TEST_STRANGER"

func TestMain(m *testing.M) {
	if path := os.Getenv(strangerEnv); path != "" {
		os.Exit(stranger(path))
	}
	goleak.VerifyTestMain(m)
}

func stranger(path string) int {
	c, err := net.Dial("unix", path)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, _ = io.WriteString(c, "GET /status HTTP/1.1\r\nHost: usher\r\nConnection: close\r\n\r\n") // refused or not, what counts is the handler
	answer, _ := io.ReadAll(c)
	fmt.Println(len(answer))
	return 0
}

func serve(t *testing.T, dir string, h http.HandlerFunc) *Server {
	t.Helper()
	s, err := Serve(dir, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConversation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := serve(t, dir, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unknown" {
			Refuse(w, fmt.Errorf("no server named %q is configured", "x"), true)
			return
		}
		fmt.Fprint(w, r.Method, " ", r.URL.Path)
	})
	for path, want := range map[string]os.FileMode{dir: 0o700, s.Path(): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode().Perm(), err, want)
		}
	}
	peers, err := Peers(t.Context(), dir)
	if err != nil || len(peers) != 1 || peers[0].PID != os.Getpid() {
		t.Fatalf("peers %v, %v", peers, err)
	}
	resp, err := peers[0].Do(t.Context(), http.MethodPost, "/reload")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(body) != "POST /reload" {
		t.Errorf("answer %q", body)
	}
	if _, err := peers[0].Do(t.Context(), http.MethodGet, "/unknown"); err == nil || !strings.Contains(err.Error(), `no server named "x"`) {
		t.Errorf("unknown server: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if peers, _ := Peers(t.Context(), dir); len(peers) != 0 {
		t.Errorf("peers after close: %v", peers)
	}
}

// TestDeadSocketsAreRemoved wants the socket of a killed process gone, and other
// files left alone.
func TestDeadSocketsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "999999.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	other := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	peers, err := Peers(t.Context(), dir)
	if err != nil || len(peers) != 0 {
		t.Errorf("peers %v, %v", peers, err)
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("the dead socket is still there")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("another file was removed")
	}
}

func TestOpenDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Serve(dir, http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a directory open to others: %v", err)
	}
}
