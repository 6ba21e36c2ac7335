package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
)

// loginHome is a home whose servers each need a login; it returns how to run a
// command in it.
func loginHome(t *testing.T, servers map[string]string) runIn {
	return loginAt(t, t.TempDir(), servers)
}

// runIn runs a command in a home.
type runIn = func(in io.Reader, out, errw io.Writer, args ...string) int

func loginAt(t *testing.T, home string, servers map[string]string) runIn {
	entries := map[string]any{}
	for name, url := range servers {
		entries[name] = map[string]string{"url": url}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": entries, "usher": map[string]string{"key": "file:" + filepath.Join(home, "key")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "mcp.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(in io.Reader, out, errw io.Writer, args ...string) int {
		env := map[string]string{"USHER_HOME": home}
		sys := config.System{Home: home, Workdir: home, LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
		return Run(t.Context(), args, cmdutil.IO{In: in, Out: out, Err: errw, Width: 80, System: sys})
	}
}

// consentTo opens the page and follows the redirect, as a browser would.
func consentTo(t *testing.T, as *fake.AuthServer, page string) {
	back, err := as.Consent(t.Context(), page)
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := http.Get(back.String())
	if err != nil {
		t.Error(err)
		return
	}
	_ = resp.Body.Close()
}

// TestLoginMany logs three servers of two authorization servers in with one
// command, and calls a tool of each afterwards.
func TestLoginMany(t *testing.T) {
	one, two := fake.NewAuth(&fake.AuthOptions{Name: "one"}), fake.NewAuth(&fake.AuthOptions{Name: "two"})
	by := map[string]*fake.AuthServer{"notes": one, "mail": one, "tickets": two}
	servers := map[string]string{}
	for name, as := range by {
		servers[name] = protected(t, as)
	}
	run := loginHome(t, servers)
	r, w := io.Pipe()
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(strings.NewReader(""), w, &errs, "login", "--missing", "--json", "--wait", "30s")
		_ = w.Close()
	}()
	connected := map[string]bool{}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var line struct {
			Type, Status, Server, Phase string
			AuthorizeURL                string `json:"authorize_url"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("no JSON: %s", lines.Bytes())
		}
		if line.Type == "outcome" && line.Status == "pending" {
			go consentTo(t, by[line.Server], line.AuthorizeURL)
		}
		if line.Phase == "connected" {
			connected[line.Server] = true
		}
	}
	if got := <-code; got != cmdutil.ExitOK || len(connected) != 3 {
		t.Fatalf("exit code %d, connected %v: %s", got, connected, &errs)
	}
	for name := range by {
		var out, errs bytes.Buffer
		if got := run(nil, &out, &errs, "call", name, "add", "a=1", "b=2"); got != cmdutil.ExitOK || out.String() != "3\n" {
			t.Errorf("call %s: exit code %d, %q, %s", name, got, &out, &errs)
		}
	}
	if got := run(nil, io.Discard, io.Discard, "login", "--missing", "--json"); got != cmdutil.ExitOK {
		t.Errorf("nothing is missing: exit code %d", got)
	}
}

// TestCallNeedsLogin wants the exact next command, and exit code 10.
func TestCallNeedsLogin(t *testing.T) {
	run := loginHome(t, map[string]string{"notes": protected(t, fake.NewAuth(nil))})
	var errs bytes.Buffer
	if got := run(nil, io.Discard, &errs, "call", "notes", "add", "a=1", "b=2"); got != cmdutil.ExitWaiting || !strings.Contains(errs.String(), "usher login notes") {
		t.Errorf("exit code %d, %s", got, &errs)
	}
}

// TestLoginPaste pastes nonsense, then the answer: the first leaves the login as it
// was.
func TestLoginPaste(t *testing.T) {
	as := fake.NewAuth(nil)
	run := loginHome(t, map[string]string{"notes": protected(t, as)})
	in, paste := io.Pipe()
	said, errw := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(in, io.Discard, errw, "login", "notes", "--paste", "--wait", "30s")
		_ = errw.Close()
	}()
	var all strings.Builder
	for lines := bufio.NewScanner(said); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		fmt.Fprintln(&all, line)
		if !strings.HasPrefix(line, "http") {
			continue
		}
		go func() {
			_, _ = io.WriteString(paste, "http://127.0.0.1:1/callback?state=wrong&code=x\n") // the command may have ended
			back, err := as.Consent(t.Context(), line)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(paste, back.String()+"\n")
		}()
	}
	if got := <-code; got != cmdutil.ExitOK || !strings.Contains(all.String(), "is logged in at") {
		t.Errorf("exit code %d: %s", got, all.String())
	}
	_ = paste.Close()
	if strings.Contains(all.String(), "code=") {
		t.Error("a pasted code is shown again")
	}
}

// TestLoginStillWaiting gives up after --wait with exit code 10, and can be resumed.
func TestLoginStillWaiting(t *testing.T) {
	as := fake.NewAuth(nil)
	run := loginHome(t, map[string]string{"notes": protected(t, as)})
	var out, errs bytes.Buffer
	began := time.Now()
	if got := run(strings.NewReader(""), &out, &errs, "login", "notes", "--no-browser", "--json", "--wait", "300ms"); got != cmdutil.ExitWaiting {
		t.Errorf("exit code %d: %s %s", got, &out, &errs)
	}
	if time.Since(began) > 20*time.Second {
		t.Error("it waited for longer")
	}
	if got := run(nil, io.Discard, io.Discard, "logout", "notes"); got != cmdutil.ExitOK {
		t.Errorf("logout without a login: exit code %d", got)
	}
}
