//go:build linux || darwin

package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
)

// socketServer runs usher serve with args in a home of its own until the test ends.
type socketServer struct {
	home  string
	lines chan string
	stop  func() int
}

func serveSocket(t *testing.T, args ...string) *socketServer {
	t.Helper()
	home, err := os.MkdirTemp("", "usher") // shorter than a test's own: sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	sys := config.System{Home: home, Workdir: home, LookupEnv: func(name string) (string, bool) { return home, name == "USHER_HOME" }}
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code, lines := make(chan int, 1), make(chan string, 100)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "HOME", home)
	}
	go func() {
		code <- Run(ctx, append([]string{"serve"}, args...), cmdutil.IO{In: strings.NewReader(""), Out: io.Discard, Err: w, Width: 80, System: sys})
		_ = w.Close()
	}()
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
		close(lines)
	}()
	return &socketServer{home: home, lines: lines, stop: func() int {
		cancel()
		for range lines { // all of it is written
		}
		return <-code
	}}
}

// await returns the first line with a text, "" if there is none.
func (s *socketServer) await(text string) string {
	for line := range s.lines {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// A gateway on a socket serves programs of the same user, checks Host and Origin as
// on a port, and leaves nothing behind.
func TestServeSocket(t *testing.T) {
	s := serveSocket(t, "--http", "unix:HOME/run/mcp.sock")
	path := filepath.Join(s.home, "run", "mcp.sock")
	if line := s.await("serving"); !strings.Contains(line, "on the socket "+path) {
		t.Fatalf("it says %q", line)
	}
	if line := s.await("console"); !strings.Contains(line, "no console") {
		t.Errorf("of the console it says %q", line)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	for _, tt := range []struct {
		name, url, origin string
		want              int
	}{
		{"a program", "http://localhost/mcp", "", http.StatusOK},
		{"another host", "http://evil.example/mcp", "", http.StatusMisdirectedRequest},
		{"a web page", "http://localhost/mcp", "https://evil.example", http.StatusForbidden},
	} {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tt.url, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if tt.origin != "" {
			req.Header.Set("Origin", tt.origin)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s: HTTP %d", tt.name, resp.StatusCode)
		}
	}
	other := serveSocket(t, "--http", "unix:"+path)
	if line := other.await("another program listens"); line == "" {
		t.Error("a second one on the same socket does not say what is wrong")
	}
	if code := other.stop(); code != 1 {
		t.Errorf("a second one on the same socket ended with %d", code)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("ended with %d", code)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is still there")
	}
}

// A directory that others may enter is refused, as is a socket for several instances.
func TestServeSocketRefuses(t *testing.T) {
	open, err := os.MkdirTemp("", "usher")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(open) })
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	s := serveSocket(t, "--http", "unix:"+open+"/mcp.sock")
	if line := s.await("open to others"); line == "" {
		t.Error("it does not say that the directory is open to others")
	}
	if code := s.stop(); code != 1 {
		t.Errorf("ended with %d", code)
	}
}
