package torture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/cli"
	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/person"
	"github.com/usher-mcp/usher/internal/torture"
	"github.com/usher-mcp/usher/process"
)

func TestMain(m *testing.M) {
	process.Main() // the guard around a child is this binary too
	testscript.Main(runner(func() int {
		for _, name := range person.Markers() {
			_ = os.Unsetenv(name) // a developer's agent may run the tests
		}
		code := m.Run()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
		return code
	}), map[string]func(){
		"usher":         func() { os.Exit(cli.Main(os.Args[1:], cmdutil.System())) },
		"other-usher":   func() { fmt.Println(`{"version": "9.9.9"}`) },
		"usher-torture": func() { os.Exit(Main(os.Args[1:], cmdutil.System())) },
	})
}

type runner func() int

func (r runner) Run() int { return r() }

// tortured runs the command with this test binary as usher, and as the servers and
// children of the run.
func tortured(t *testing.T, args ...string) (code int, out, errw string) {
	t.Helper()
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or every command ends a second later
	self, err := exec.LookPath("usher-torture")
	if err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	code = run(t.Context(), args, cmdutil.IO{In: strings.NewReader(""), Out: &o, Err: &e, Width: 80, Executable: self})
	return code, o.String(), e.String()
}

// The short form of all promises.
func TestTorture(t *testing.T) {
	code, out, errw := tortured(t, "--json")
	var r torture.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s%s", err, out, errw)
	}
	if code != cmdutil.ExitOK || len(r.Promises) != len(torture.Names()) {
		t.Errorf("exit code %d, %d promises: %s", code, len(r.Promises), errw)
	}
	for _, p := range r.Promises {
		if !p.Kept || p.Skipped == "" && len(p.Figures) < 2 {
			t.Errorf("promise %d: %s %q", p.Number, p, p.Broken)
		}
		t.Logf("%d %s: %s (%.1f s)", p.Number, p.Name, p, p.Seconds)
	}
}

// The report names the version of the program that was checked, not of the one that
// checks.
func TestVersionOfTheProgramThatIsChecked(t *testing.T) {
	exe, err := exec.LookPath("other-usher")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := versionOf(t.Context(), exe); err != nil || got != "9.9.9" {
		t.Errorf("version %q, %v", got, err)
	}
}

func TestTortureOne(t *testing.T) {
	code, out, errw := tortured(t, "--promise", "9", "--seed", "7")
	if code != cmdutil.ExitOK || !strings.Contains(out, "kept    9  Approved means approved") || !strings.Contains(out, "30 mutations, 0 let through") || !strings.Contains(out, "seed 7") {
		t.Errorf("exit code %d: %s%s", code, out, errw)
	}
	for _, args := range [][]string{{"--promise", "12"}, {"--minutes", "-1"}, {"--seed", "x"}} {
		if code, _, errw := tortured(t, args...); code != cmdutil.ExitUsage || errw == "" {
			t.Errorf("%v: exit code %d: %s", args, code, errw)
		}
	}
}
