package cli

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/torture"
)

// tortured runs the command with this test binary as the program that is put to the
// test.
func tortured(t *testing.T, args ...string) (code int, out, errw string) {
	t.Helper()
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or every command ends a second later
	exe, err := exec.LookPath("usher")
	if err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	code = Run(t.Context(), append([]string{"torture"}, args...), IO{In: strings.NewReader(""), Out: &o, Err: &e, Width: 80, Executable: exe})
	return code, o.String(), e.String()
}

// The short form of all promises.
func TestTorture(t *testing.T) {
	code, out, errw := tortured(t, "--json")
	var r torture.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s%s", err, out, errw)
	}
	if code != exitOK || len(r.Promises) != len(torture.Names()) {
		t.Errorf("exit code %d, %d promises: %s", code, len(r.Promises), errw)
	}
	for _, p := range r.Promises {
		if !p.Kept || p.Skipped == "" && len(p.Figures) < 2 {
			t.Errorf("promise %d: %s %q", p.Number, p, p.Broken)
		}
		t.Logf("%d %s: %s (%.1f s)", p.Number, p.Name, p, p.Seconds)
	}
}

func TestTortureOne(t *testing.T) {
	code, out, errw := tortured(t, "--promise", "9", "--seed", "7")
	if code != exitOK || !strings.Contains(out, "kept    9  Approved means approved") || !strings.Contains(out, "30 mutations, 0 let through") || !strings.Contains(out, "seed 7") {
		t.Errorf("exit code %d: %s%s", code, out, errw)
	}
	for _, args := range [][]string{{"--promise", "12"}, {"--minutes", "-1"}, {"--seed", "x"}} {
		if code, _, errw := tortured(t, args...); code != exitUsage || errw == "" {
			t.Errorf("%v: exit code %d: %s", args, code, errw)
		}
	}
}
