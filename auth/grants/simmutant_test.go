package grants

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/test/need"
)

// Bugs that are put into the real code, each by replacing one piece of it: the
// simulation is built with the changed file and has to fail. The short form only
// checks that the pieces are still there.
func TestSimulationFindsMutants(t *testing.T) {
	for _, m := range []struct{ name, file, from, to string }{
		{"no lease", "../../vault/lease.go", "lease, err := Acquire(ctx, s, name, ttl)\n", "var lease Lease\n\tvar err error\n"},
		{
			"persist after use", "refresh.go", "\terr := rf.write(ctx, a, next, version, l)\n",
			"\trf.grants.cache.put(a, next)\n\tvar err error\n\tgo func() { _ = rf.write(ctx, a, next, version, l) }()\n",
		},
		{"requests of others are not looked for", "sending.go", "g.Version || s.Engine == sl.seed {\n", "g.Version || s.Engine != \"\" {\n"},
		{"older tokens are preferred", "refresh.go", "g.Generation > r.stale\n}", "g.Generation >= r.stale\n}"},
		{"failures are forgotten", "failures.go", "wait := time.Until(t.NotBefore)\n", "wait := time.Duration(0)\n"},
		{"a lost answer is not asked for again", "refresh.go", "oauth.AnswerLost(err) && lost == nil", "oauth.AnswerLost(err) && lost != nil"},
		{"what could not be stored is dropped", "refresh.go", "\t\trf.grants.unsaved.put(a, next, version)\n", ""},
	} {
		t.Run(m.name, func(t *testing.T) {
			source, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), m.from); n != 1 {
				t.Fatalf("%s has the piece %d times, want once:\n%s", m.file, n, m.from)
			}
			if !need.Proof() {
				return
			}
			out := runMutant(t, m.file, strings.Replace(string(source), m.from, m.to, 1))
			_, found, ok := strings.Cut(out, "seed ")
			if !ok {
				t.Fatalf("not found:\n%s", out)
			}
			found, _, _ = strings.Cut(found, "\n")
			t.Logf("found: seed %s", found)
		})
	}
}

// runMutant runs the simulation with another text in place of a file.
func runMutant(t *testing.T, file, text string) string {
	t.Helper()
	dir := t.TempDir()
	changed := filepath.Join(dir, "changed.go")
	overlay := filepath.Join(dir, "overlay.json")
	full, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := json.Marshal(map[string]any{"Replace": map[string]string{full: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{changed: []byte(text), overlay: plan} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-run", "^TestSimulation$", ".")
	cmd.Env = append(os.Environ(), "USHER_SIM_RUNS=20000")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the simulation passed:\n%s", out)
	}
	return string(out)
}
