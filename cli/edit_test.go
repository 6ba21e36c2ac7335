package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
)

func TestConfirm(t *testing.T) {
	for _, tt := range []struct {
		typed string
		want  bool
	}{
		{"y\n", true}, {"Yes \r\n", true}, {"YES", true}, {"n\n", false}, {"\n", false}, {"", false}, {"yep\n", false}, {"no\ny\n", false},
	} {
		var said strings.Builder
		a := &factory{io: IO{In: strings.NewReader(tt.typed), Err: &said, InTTY: true}}
		got, err := a.confirm(t.Context(), "really\x1b[2K?")
		if got != tt.want || err != nil {
			t.Errorf("confirm with %q typed = %v, %v; want %v", tt.typed, got, err, tt.want)
		}
		if !strings.HasPrefix(said.String(), `really\u001b[2K? [y/N] `) {
			t.Errorf("asked %q", said.String())
		}
	}
	a := &factory{io: IO{In: strings.NewReader("y\n"), Err: io.Discard}}
	if got, err := a.confirm(t.Context(), "?"); got || !errors.Is(err, errNoTerminal) || exitCode(err) != exitWaiting {
		t.Errorf("without a terminal: %v, %v", got, err)
	}
}

// TestConfirmInterrupted wants that Ctrl-C ends a question that nobody answers.
func TestConfirmInterrupted(t *testing.T) {
	in, typing := io.Pipe()
	defer typing.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	asked := make(chan struct{})
	go func() {
		<-asked
		interrupt()
	}()
	a := &factory{io: IO{In: in, Err: signalWriter{asked}, InTTY: true}}
	got, err := a.confirm(ctx, "?")
	if got || exitCode(err) != exitStopped {
		t.Errorf("confirm = %v, %v; want exit code %d", got, err, exitStopped)
	}
}

// signalWriter closes a channel at the first write that asks something.
type signalWriter struct{ asked chan struct{} }

func (s signalWriter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "[y/N]") {
		close(s.asked)
	}
	return len(p), nil
}

func TestReadLineLeavesTheRest(t *testing.T) {
	r := strings.NewReader("one\ntwo\nthree")
	for _, want := range []string{"one", "two", "three"} {
		if got, _ := readLine(r); got != want {
			t.Errorf("readLine = %q, want %q", got, want)
		}
	}
}

// TestJSONTextMeansTheSame wants text without anything a terminal acts on that
// still decodes to the very value.
func TestJSONTextMeansTheSame(t *testing.T) {
	for _, s := range append(deceits, "plain <&> ü 你好", "\u2028", "\x7f", "😀", "\U0010fffd") {
		text, err := jsonText(map[string]string{s: s})
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(string(text), hostile) {
			t.Errorf("%q is written as %q", s, text)
		}
		var back map[string]string
		if err := json.Unmarshal(text, &back); err != nil || back[s] != s {
			t.Errorf("%q is written as %s and read as %q (%v)", s, text, back, err)
		}
	}
}

func TestVariableName(t *testing.T) {
	for _, tt := range [][3]string{
		{"docs", "Authorization", "DOCS_AUTHORIZATION"},
		{"git-hub", "X-Api-Key", "GIT_HUB_X_API_KEY"},
		{"9lives", "value", "LIVES_TOKEN"},
		{"ünï", "k", "_N__K"},
	} {
		if got := variableName(tt[0], tt[1]); got != tt[2] {
			t.Errorf("variableName(%q, %q) = %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

func TestWord(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "https://x.example/a?b=c": "https://x.example/a?b=c", "${env:X}": "${env:X}", "": `""`,
		"two words": `"two words"`, "a;b": `"a;b"`, "a\nb": `"a\nb"`, "****": "****",
	} {
		if got := word(in); got != want {
			t.Errorf("word(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestShortPaths(t *testing.T) {
	home, work := filepath.FromSlash("/h/me"), filepath.FromSlash("/h/me/project")
	a := &factory{io: IO{System: config.System{Home: home, Workdir: work}}}
	for in, want := range map[string]string{
		"/h/me/project/.mcp.json":      ".mcp.json",
		"/h/me/project/sub/.mcp.json":  "sub/.mcp.json",
		"/h/me/.config/usher/mcp.json": "~/.config/usher/mcp.json",
		"/h/me/projects/x.json":        "~/projects/x.json",
		"/etc/x.json":                  "/etc/x.json",
		"x.json":                       "x.json",
		"environment variable X":       "environment variable X",
	} {
		if got := filepath.ToSlash(a.short(filepath.FromSlash(in))); got != want {
			t.Errorf("short(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFlatten(t *testing.T) {
	one, two, three := errors.New("1"), errors.New("2"), errors.New("3")
	var got []string
	for _, err := range flatten(errors.Join(one, errors.Join(two, three))) {
		got = append(got, err.Error())
	}
	if diff := cmp.Diff([]string{"1", "2", "3"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if flatten(nil) != nil {
		t.Error("no error is taken apart into some")
	}
}

// TestRefusedEditsChangeNothing wants the very bytes and no new file after
// commands that fail at the last moment.
func TestRefusedEditsChangeNothing(t *testing.T) {
	const odd = "{\r\n\t// kept\r\n\t\"mcpServers\": {\"a\": {\"url\": \"https://a.example\"},},\r\n\t\"usher\": {\"policy\": {\"deny\": 7}}}"
	for _, args := range [][]string{
		{"add", "a", "https://b.example"},
		{"deny", "x"},
		{"deny", "--remove", "x"},
		{"remove", "b"},
		{"add", "b", "nonsense"},
		{"add", "b", "https://b.example", "--project", "-H", "Authorization: Bearer abc123secretvalue"},
	} {
		w := newWorld(t)
		w.write("usher/mcp.json", odd)
		code, _, errs := w.run(args...)
		if code == 0 || errs == "" {
			t.Errorf("usher %q: code %d, %q", args, code, errs)
		}
		if got := w.read("usher/mcp.json"); got != odd {
			t.Errorf("usher %q changed the file:\n%q", args, got)
		}
		if left, _ := filepath.Glob(filepath.Join(w.dir, "usher", "*")); len(left) != 2 { // and the script token
			t.Errorf("usher %q left %q", args, left)
		}
		if left, _ := filepath.Glob(filepath.Join(w.dir, ".*")); len(left) != 0 {
			t.Errorf("usher %q left %q", args, left)
		}
	}
}
