package terminal

import (
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/fake"
)

// TestPerson wants that a person at a terminal is asked nothing more, and that a
// terminal is no help to an agent, also one that takes the markers out of the
// environment of the command.
func TestPerson(t *testing.T) {
	w := newWorld(t)
	url, stop, err := fake.New(&fake.Options{Name: "math"}).Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	w.servers["math"] = map[string]string{"url": url + "/mcp"}
	s := w.open(200, 60, strings.Join([]string{
		"usher allow math",
		`echo "person $?"`,
		"printf %s hunter2 | usher secret set x -",
		`echo "pipe $?"`,
		"CLAUDECODE=1 usher allow --remove math",
		`echo "agent $?"`,
		`CLAUDECODE=1 sh -c 'env -u CLAUDECODE usher allow --remove math; echo "hidden $?"'`,
		`CLAUDECODE=1 sh -c 'env -i PATH="$PATH" USHER_HOME="$USHER_HOME" usher token mint; echo "bare $?"'`,
		"usher serve --http 127.0.0.1:0 & ",
		`for i in $(seq 600); do usher console && break; sleep 0.1; done`,
		`echo "console $?"`,
		`CLAUDECODE=1 sh -c 'env -u CLAUDECODE usher console; echo "link $?"'`,
		"kill $!; wait; true",
	}, "\n"))
	got := s.Await(func(screen string) string {
		if !strings.Contains(screen, "exit code 0") {
			return "the end"
		}
		return ""
	})
	for _, want := range []string{
		`added "allow math"`, "person 0", "pipe 0", "agent 10", "hidden 10", "bare 10", "console 0", "link 10",
		"console http://127.0.0.1:", "this change needs a person at a terminal",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(got, "[y/N]") || strings.Count(got, "?once=") != 2 {
		t.Errorf("a question, or not the two links of a person: one from serve, one from console")
	}
	if t.Failed() {
		t.Log(got)
	}
}
