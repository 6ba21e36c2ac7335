package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/cli"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/person"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/test/need"
)

type runner func() int

func (r runner) Run() int { return r() }

func TestMain(m *testing.M) {
	process.Main() // the guard around a child is this binary too
	testscript.Main(runner(func() int {
		code := m.Run()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
		return code
	}), map[string]func(){
		"usher": func() { os.Exit(cli.Main(os.Args[1:], cli.System())) },
		"fake":  func() { syscall.Exit(fake.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// patience is how long a scene may take.
const patience = 3 * time.Minute

// play runs a scene in a browser of its own. What the scene is told is told in tell.
func play(t *testing.T, scene string, tell map[string]any) {
	t.Helper()
	params := map[string]any{
		"playwright": need.Package(t, "playwright-core"), "axe": need.Package(t, "axe-core"), "chromium": need.Chromium(t),
		"profile": filepath.Join(t.TempDir(), "may-hold-secrets"), // browsers keep what they visit
	}
	if os.Getenv("USHER_SCREENSHOTS") == "1" {
		root, err := need.Root()
		if err != nil {
			t.Fatal(err)
		}
		params["pictures"] = filepath.Join(root, "docs", "img")
	}
	for name, value := range tell {
		params[name] = value
	}
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, need.Node(t), scene, string(text))
	cmd.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", scene, err, &said)
	}
}

// home is a home with these servers, and how to run usher in it.
type home struct{ dir, token string }

func newHome(t *testing.T, servers map[string]any) home {
	t.Helper()
	dir, err := os.MkdirTemp("", "h") // short: sockets lie below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	text, err := json.Marshal(map[string]any{"mcpServers": servers, "usher": map[string]string{"key": "file:" + filepath.Join(dir, "key")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mcp.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	token, err := person.NewToken(dir)
	if err != nil {
		t.Fatal(err)
	}
	return home{dir, token}
}

func (h home) usher(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "usher", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir = h.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "USHER_HOME=" + h.dir, "TMPDIR=" + os.TempDir(),
		"BROWSER=true", "GORACE=atexit_sleep_ms=0", "LANG=C.UTF-8",
		person.TokenVariable + "=" + h.token,
	}
	return cmd
}

// words are what a program says, a line at a time, as it comes.
type words struct {
	lines chan string
	rest  []byte
}

func newWords() *words { return &words{lines: make(chan string, 1000)} }

func (w *words) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		select {
		case w.lines <- string(line):
		default: // nobody listens any more
		}
		w.rest = rest
	}
}

// await waits for a line that holds a text.
func (w *words) await(t *testing.T, text string) string {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case line := <-w.lines:
			if strings.Contains(line, text) {
				return line
			}
			t.Log(line)
		case <-timer.C:
			t.Fatalf("it did not say %q", text)
		}
	}
}
