package replicas

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A server that may run only once runs in the replica that was first asked for it. The
// other one says where that is and what to do, and has it after it was ended there.
func TestSingleton(t *testing.T) {
	w := newWorld(t, schema(t))
	w.servers["once"] = map[string]any{"command": w.exe, "args": []string{"fake"}, "singleton": true}
	w.start(2)
	ask := func(r *replica) string { return w.ask(r.addr, "/servers/once/mcp", "add", `{"a":1,"b":2}`) }
	first, second := w.all[0], w.all[1]
	if got := ask(first); !strings.Contains(got, `"text":"3"`) {
		t.Fatalf("the first to be asked does not run it: %s", got)
	}
	got := ask(second)
	for _, want := range []string{"it is a singleton", "http://" + first.addr + "/servers/once/mcp", "stop it there"} {
		if !strings.Contains(got, want) {
			t.Errorf("the other one does not say %q: %s", want, got)
		}
	}
	cmd := exec.Command(w.exe, "stop", "once")
	cmd.Env = append(slices.Clone(w.env), "USHER_HOME="+first.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("usher stop once: %v: %s", err, out)
	}
	if got := ask(second); !strings.Contains(got, `"text":"3"`) {
		t.Errorf("the other one does not run it after it was ended: %s", got)
	}
}
