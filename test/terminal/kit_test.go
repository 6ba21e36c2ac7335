package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/cli"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/process"
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
	})
}

// world is a home whose servers each want a login.
type world struct {
	t       *testing.T
	home    string
	servers map[string]any
}

func newWorld(t *testing.T) *world {
	t.Helper()
	home, err := os.MkdirTemp("", "h") // short: sockets lie below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	return &world{t: t, home: home, servers: map[string]any{}}
}

// as starts an authorization server.
func (w *world) as(switches ...string) *fake.AuthServer {
	w.t.Helper()
	as := fake.NewAuth(&fake.AuthOptions{Switches: switches})
	_, stop, err := as.Listen()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(stop)
	return as
}

// add starts a server that one of them protects.
func (w *world) add(name string, as *fake.AuthServer) {
	w.t.Helper()
	mcp, p := fake.New(&fake.Options{Name: name}), &fake.Protected{}
	hs := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		as.Protect(p, mcp.Handler()).ServeHTTP(rw, r)
	}))
	p.Resource = hs.URL + "/mcp"
	w.t.Cleanup(func() {
		mcp.Close()
		hs.Close()
	})
	w.servers[name] = map[string]string{"url": p.Resource}
}

// open runs a command in the home, on a terminal of this size. What it leaves of the
// terminal, and its exit code, are printed after it.
func (w *world) open(columns, rows int, command string) *Screen {
	w.t.Helper()
	text, err := json.Marshal(map[string]any{"mcpServers": w.servers, "usher": map[string]string{"key": "file:" + filepath.Join(w.home, "key")}})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "mcp.json"), text, 0o600); err != nil {
		w.t.Fatal(err)
	}
	env := []string{"HOME=" + w.home, "USHER_HOME=" + w.home, "GORACE=atexit_sleep_ms=0", "NO_COLOR=" + os.Getenv("NO_COLOR")}
	return Open(w.t, columns, rows, env, "cd; "+command+`; echo "exit code $?, $(stty -a | grep -ow -e "-*icanon")"`)
}

var authorizeURL = regexp.MustCompile(`(?m)^  \d+ (\S+)  (http://\S+)$`)

// addresses are the consent pages that were printed, by server.
func addresses(s *Screen) map[string]string {
	found := map[string]string{}
	for _, m := range authorizeURL.FindAllStringSubmatch(s.Joined(), -1) {
		found[m[1]] = m[2]
	}
	return found
}

// landing is the address that a browser ends on.
func landing(t *testing.T, as *fake.AuthServer, page string) string {
	t.Helper()
	back, err := as.Consent(t.Context(), page)
	if err != nil {
		t.Fatal(err)
	}
	return back.String()
}

// visit goes to an address, as a browser on this machine does.
func visit(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

var seconds = regexp.MustCompile(` +\d+ s\b`)

// board is the live part of a screen, with what differs from time to time left out.
func board(screen string) string {
	var rows []string
	for row := range strings.SplitSeq(screen, "\n") {
		row = seconds.ReplaceAllString(row, " N s")
		rows = append(rows, strings.TrimRight(row, " "))
	}
	return strings.Join(rows, "\n")
}
