package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
)

// world is a home with usher in it, and servers of both eras behind it.
type world struct {
	t       *testing.T
	program string // usher
	home    string
	entries map[string]string // servers of the configuration
	fakes   map[string]*fake.Server
	extra   int // servers that were added so far
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "u") // short: there are sockets below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, program: filepath.Join(dir, "usher"), home: filepath.Join(dir, "home"), entries: map[string]string{}, fakes: map[string]*fake.Server{}}
	if err := os.Symlink(self, w.program); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	w.serve("old", "2025-11-25")
	w.serve("new", "2026-07-28")
	w.configure()
	// The first list of all tools goes out without a server that is slower than the
	// others, and is followed by word of a change; tests want to see all at once.
	for name := range w.entries {
		if out, err := w.command(t.Context(), "tools", name).CombinedOutput(); err != nil {
			t.Fatalf("usher tools %s: %v\n%s", name, err, out)
		}
	}
	return w
}

// serve starts a server and puts it into the configuration.
func (w *world) serve(name string, versions ...string) {
	w.t.Helper()
	w.fakes[name] = fake.New(&fake.Options{Name: name, Versions: versions})
	url, stop, err := w.fakes[name].Listen()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(stop)
	w.entries[name] = fmt.Sprintf(`{"url": %q}`, url+"/mcp")
}

// configure writes the configuration.
func (w *world) configure() {
	w.t.Helper()
	var list []string
	for name, entry := range w.entries {
		list = append(list, fmt.Sprintf("%q: %s", name, entry))
	}
	text := `{"mcpServers": {` + strings.Join(list, ",\n") + `}}`
	if err := os.WriteFile(filepath.Join(w.home, "mcp.json"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// env is what programs of this world are started with.
func (w *world) env() []string {
	return append(os.Environ(), "HOME="+w.home, "USHER_HOME="+w.home, "GORACE=atexit_sleep_ms=0")
}

func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, w.program, args...)
	c.Env, c.Dir = w.env(), w.home
	return c
}

// change puts a server in the place of the one it added last, and has running instances
// look.
func (w *world) change() string {
	w.t.Helper()
	delete(w.entries, fmt.Sprintf("extra%d", w.extra))
	w.extra++
	name := fmt.Sprintf("extra%d", w.extra)
	w.serve(name)
	w.configure()
	if out, err := w.command(w.t.Context(), "reload").CombinedOutput(); err != nil {
		w.t.Fatalf("usher reload: %v\n%s", err, out)
	}
	return name
}

// gateway starts usher on HTTP and returns its address.
func (w *world) gateway(args ...string) string {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := w.command(ctx, append([]string{"serve", "--http", "127.0.0.1:0"}, args...)...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 20 * time.Second
	out, err := c.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	url := ""
	for url == "" && lines.Scan() {
		url, _ = strings.CutPrefix(lines.Text(), "serving ")
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, out)
	}()
	w.t.Cleanup(func() {
		stop()
		<-read
		_ = c.Wait() // it was interrupted
	})
	if url == "" {
		w.t.Fatal("usher serve said no address")
	}
	return url
}

// answers reads lines of JSON.
func answers[T any](t *testing.T, r io.Reader, each func(T) bool) {
	t.Helper()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if !each(v) {
			return
		}
	}
}

// idle closes the connections that a test has left open.
func idle(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
