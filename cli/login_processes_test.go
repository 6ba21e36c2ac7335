package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/fake"
)

// machine is a home with servers that need logins, where usher runs as processes.
type machine struct {
	home, usher string
	run         runIn // in this process, for looking
	by          map[string]*fake.AuthServer
}

// newMachine has six servers at two authorization servers.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{home: t.TempDir(), usher: usherProgram(t), by: map[string]*fake.AuthServer{}}
	one, two := fake.NewAuth(&fake.AuthOptions{Name: "one"}), fake.NewAuth(&fake.AuthOptions{Name: "two"})
	servers := map[string]string{}
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		m.by[name] = []*fake.AuthServer{one, two}[i%2]
		servers[name] = protected(t, m.by[name])
	}
	m.run = loginAt(t, m.home, servers)
	return m
}

// usherProgram is a path at which this test binary is usher: TestMain tells by the
// name.
func usherProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "usher")
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// loginProcess is one usher login --json.
type loginProcess struct {
	cmd  *exec.Cmd
	errs bytes.Buffer
	out  *bufio.Scanner
	// pending and connected are what it has told so far, by server.
	pending   map[string]courierJSON
	connected map[string]bool
}

func (m *machine) start(t *testing.T, flags ...string) *loginProcess {
	t.Helper()
	p := &loginProcess{pending: map[string]courierJSON{}, connected: map[string]bool{}}
	p.cmd = exec.CommandContext(t.Context(), m.usher, append([]string{"login", "--json", "--wait", "60s"}, flags...)...)
	p.cmd.Env = []string{"USHER_HOME=" + m.home, "HOME=" + m.home, "GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH")}
	p.cmd.Dir, p.cmd.Stderr = m.home, &p.errs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// read takes lines in until enough says so, or the process says no more.
func (p *loginProcess) read(t *testing.T, enough func() bool) {
	t.Helper()
	for !enough() && p.out.Scan() {
		var line courierJSON
		if err := json.Unmarshal(p.out.Bytes(), &line); err != nil {
			t.Errorf("no JSON: %s", p.out.Bytes())
		}
		if line.Status == "pending" {
			p.pending[line.Server] = line
		}
		if line.Phase == "connected" {
			p.connected[line.Server] = true
		}
	}
}

// end reads the rest and returns the exit code.
func (p *loginProcess) end(t *testing.T) int {
	t.Helper()
	p.read(t, func() bool { return false })
	_ = p.cmd.Wait() // its exit code says how
	return p.cmd.ProcessState.ExitCode()
}

func (p *loginProcess) pages() map[string]string {
	out := map[string]string{}
	for name, line := range p.pending {
		out[name] = line.AuthorizeURL
	}
	return out
}

// consent agrees at one of the pages and goes where the browser is sent.
func (m *machine) consent(t *testing.T, p *loginProcess, server string) {
	t.Helper()
	consentTo(t, m.by[server], p.pending[server].AuthorizeURL)
}

// callable wants a tool of every server to work.
func (m *machine) callable(t *testing.T) {
	t.Helper()
	for name := range m.by {
		var errs bytes.Buffer
		if got := m.run(nil, io.Discard, &errs, "call", name, "add", "a=1", "b=2"); got != cmdutil.ExitOK {
			t.Errorf("call %s: exit code %d: %s", name, got, &errs)
		}
	}
}

// TestTwoLoginProcesses runs the same command twice at once: whoever comes second
// joins what the first began, one listener answers for both, and one consent at each
// server ends them both.
func TestTwoLoginProcesses(t *testing.T) {
	m := newMachine(t)
	one, two := m.start(t, "--all"), m.start(t, "--all")
	for _, p := range []*loginProcess{one, two} {
		p.read(t, func() bool { return len(p.pending) == len(m.by) })
	}
	if diff := cmp.Diff(one.pages(), two.pages()); diff != "" || len(one.pages()) != len(m.by) {
		t.Fatalf("they do not share the logins (-one +two):\n%s\n%s%s", diff, &one.errs, &two.errs)
	}
	for name := range m.by {
		m.consent(t, one, name)
	}
	for name, p := range map[string]*loginProcess{"one": one, "two": two} {
		if code := p.end(t); code != cmdutil.ExitOK || len(p.connected) != len(m.by) {
			t.Errorf("process %s: exit code %d, connected %v: %s", name, code, p.connected, &p.errs)
		}
	}
	m.callable(t)
	for _, as := range []*fake.AuthServer{m.by["a"], m.by["b"]} {
		if trades, clients := as.Requests(fake.EventToken, "authorization_code"), as.Requests(fake.EventRegister, ""); len(trades) != 3 || len(clients) != 1 {
			t.Errorf("%d codes traded, %d clients registered; want 3 and 1", len(trades), len(clients))
		}
	}
}

// TestLoginKilledHalfway kills the process after half of the consents: the next one
// finds that half connected and goes on with the rest, also with a consent page that
// was open all the time.
func TestLoginKilledHalfway(t *testing.T) {
	m := newMachine(t)
	first := m.start(t, "--all")
	first.read(t, func() bool { return len(first.pending) == len(m.by) })
	for _, name := range []string{"a", "b", "c"} {
		m.consent(t, first, name)
	}
	first.read(t, func() bool { return len(first.connected) == 3 })
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.end(t)
	second := m.start(t, "--missing")
	second.read(t, func() bool { return len(second.pending) == 3 })
	if _, again := second.pending["a"]; again || len(second.pending) != 3 {
		t.Fatalf("asks for %v again: %s", second.pages(), &second.errs)
	}
	consentTo(t, m.by["d"], first.pending["d"].AuthorizeURL) // the page that was left open
	m.consent(t, second, "e")
	m.consent(t, second, "f")
	if code := second.end(t); code != cmdutil.ExitOK || len(second.connected) != 3 {
		t.Errorf("exit code %d, connected %v: %s", code, second.connected, &second.errs)
	}
	m.callable(t)
	for _, as := range []*fake.AuthServer{m.by["a"], m.by["b"]} {
		if clients := as.Requests(fake.EventRegister, ""); len(clients) != 1 {
			t.Errorf("%d clients registered", len(clients))
		}
	}
}
