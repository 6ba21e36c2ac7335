package docs

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConsole types every console block of every page, each page in a world of
// its own.
func TestConsole(t *testing.T) {
	for _, p := range pages(t) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			said := map[int][]string{} // by line of the command: what it printed instead
			for _, b := range Blocks(p.text) {
				if b.Lang == "console" {
					session(t, w, p, b, said)
				} else if err := w.prepare(t.Context(), b); err != nil {
					t.Fatalf("%s:%d: %v", p.name, b.First, err)
				}
			}
			if *update && len(said) > 0 {
				if err := os.WriteFile(p.path, []byte(rewrite(p.text, said)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func session(t *testing.T, w *world, p page, b Block, said map[int][]string) {
	t.Helper()
	steps := Steps(b)
	for i, s := range steps {
		got, err := w.run(t.Context(), s.Command)
		if err != nil {
			t.Fatalf("%s:%d: %s: %v\n%s", p.name, s.Line, s.Command, err, got)
		}
		want := 0
		if i == len(steps)-1 && b.Attrs["exit"] != "" {
			if want, err = strconv.Atoi(b.Attrs["exit"]); err != nil {
				t.Fatalf("%s:%d: exit=%s", p.name, b.First, b.Attrs["exit"])
			}
		}
		asked := i+1 < len(steps) && steps[i+1].Command == "echo $?"
		if w.last != want && !asked {
			t.Errorf("%s:%d: %s ended with code %d, want %d\n%s", p.name, s.Line, s.Command, w.last, want, got)
		}
		if s.Want == nil || Matches(s.Want, got) {
			continue
		}
		if *update {
			said[s.Line] = strings.Split(strings.TrimSuffix(got, "\n"), "\n")
			continue
		}
		t.Errorf("%s:%d: %s (-want +got)\n%s", p.name, s.Line, s.Command,
			cmp.Diff(s.Want, strings.Split(strings.TrimSuffix(got, "\n"), "\n")))
	}
}

// rewrite replaces what stands below the commands in the given lines.
func rewrite(text string, said map[int][]string) string {
	var out []string
	printed := false // inside output that is replaced
	for i, line := range strings.Split(text, "\n") {
		isCommand := strings.HasPrefix(line, "$ ")
		if printed && !isCommand && line != "```" {
			continue
		}
		printed = false
		out = append(out, line)
		if got, ok := said[i+1]; ok && isCommand {
			out = append(out, got...)
			printed = true
		}
	}
	return strings.Join(out, "\n")
}

func TestSteps(t *testing.T) {
	b := Blocks("a\n```console exit=1\n$ one\n$ two <<END\n> x\n> END\nsaid\n> quoted\n```\n")
	if len(b) != 1 || b[0].Lang != "console" || b[0].Attrs["exit"] != "1" || b[0].First != 3 {
		t.Fatalf("blocks %+v", b)
	}
	if diff := cmp.Diff(map[string]string{"broken": "", "from": "a b=c"}, attributes(" broken from=a b=c")); diff != "" {
		t.Errorf("attributes (-want +got)\n%s", diff)
	}
	want := []Step{
		{Command: "one", Line: 3},
		{Command: "two <<END\nx\nEND", Line: 4, Want: []string{"said", "> quoted"}},
	}
	if diff := cmp.Diff(want, Steps(b[0])); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		want string
		got  string
		ok   bool
	}{
		{"a", "a\n", true},
		{"a", "b\n", false},
		{"a", "a\nb\n", false},
		{"took … ms", "took 12 ms\n", true},
		{"took … ms", "took 12\nms\n", false},
		{"a\n…\nd", "a\nb\nc\nd\n", true},
		{"a\n…", "a\n", true},
		{"…\nx", "a\nb\n", false},
		{"a*", "aa\n", false},
	} {
		if got := Matches(strings.Split(tt.want, "\n"), tt.got); got != tt.ok {
			t.Errorf("Matches(%q, %q) = %v", tt.want, tt.got, got)
		}
	}
}

func TestRewrite(t *testing.T) {
	got := rewrite("$ a\nold\nolder\n$ b\nkept\n```\nend", map[int][]string{1: {"new"}})
	if want := "$ a\nnew\n$ b\nkept\n```\nend"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWorldKeepsItsState shows that directory, variables and exit code last.
func TestWorldKeepsItsState(t *testing.T) {
	w := newWorld(t)
	var got []string
	for _, command := range []string{"cd ~/notes", "export X='a b'", "sh -c 'exit 3'", `echo $? "$X" $(basename "$PWD")`} {
		out, err := w.run(t.Context(), command)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(out))
	}
	if want := []string{"", "", "", "3 a b notes"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
