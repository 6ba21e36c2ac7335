package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/cli/login"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
)

// courierWorld is a far machine, reached by a shell in place of ssh, that records
// what crosses the line in both directions.
type courierWorld struct {
	far      runIn    // a command on the far machine
	there    string   // what its usher is called
	words    []string // the command that reaches it
	toFar    string   // files of what crossed
	fromFar  string
	nearHome string
}

// greeting is what a login shell prints before anything else: it does not end with a
// line break, and looks a little like a message.
const greeting = `printf 'Welcome to devbox\nusher-courier {"kind":"done"}\nlast login: today'; echo 'disk is 91 % full' >&2; `

func newCourierWorld(t *testing.T, servers map[string]string) *courierWorld {
	t.Helper()
	home, logs := t.TempDir(), t.TempDir()
	w := &courierWorld{far: loginAt(t, home, servers), there: usherProgram(t), nearHome: t.TempDir()}
	logs = filepath.Join(logs, "may-hold-secrets") // codes cross the line
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	w.toFar, w.fromFar = filepath.Join(logs, "to"), filepath.Join(logs, "from")
	script := greeting + `tee "` + w.toFar + `" | USHER_HOME="` + home + `" HOME="` + home + `" GORACE=atexit_sleep_ms=0 "$@" | tee "` + w.fromFar + `"`
	w.words = []string{"sh", "-c", script, "sh"}
	return w
}

// near runs usher login on the person's machine; each line of its --json goes to
// onLine.
func (w *courierWorld) near(ctx context.Context, t *testing.T, errs io.Writer, onLine func(courierJSON), args ...string) int {
	t.Helper()
	r, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		sys := config.System{Home: w.nearHome, Workdir: w.nearHome, LookupEnv: func(string) (string, bool) { return "", false }}
		code <- Run(ctx, args, cmdutil.IO{In: strings.NewReader(""), Out: out, Err: errs, Width: 80, System: sys})
		_ = out.Close()
	}()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var line courierJSON
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("no JSON: %s", lines.Bytes())
		}
		onLine(line)
	}
	return <-code
}

// saidBuffer is a standard error that several goroutines write to.
type saidBuffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (b *saidBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *saidBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

type courierJSON struct {
	Type, Status, Server, Phase, State string
	AuthorizeURL                       string `json:"authorize_url"`
}

func (w *courierWorld) args(flags ...string) []string {
	args := append([]string{"login", "--json", "--wait", "60s", "--far-usher", w.there}, flags...)
	return append(append(args, "--courier"), w.words...)
}

// TestCourier logs three servers of a far machine in with the browser of this one. No
// token and no verifier crosses the line, whatever the shell there prints, and
// nothing is stored here.
func TestCourier(t *testing.T) {
	one, two := fake.NewAuth(&fake.AuthOptions{Name: "one"}), fake.NewAuth(&fake.AuthOptions{Name: "two"})
	by := map[string]*fake.AuthServer{"notes": one, "mail": one, "tickets": two}
	servers := map[string]string{}
	for name, as := range by {
		servers[name] = protected(t, as)
	}
	w := newCourierWorld(t, servers)
	connected := map[string]bool{}
	var errs saidBuffer
	code := w.near(t.Context(), t, &errs, func(line courierJSON) {
		if line.Status == "pending" {
			go consentTo(t, by[line.Server], line.AuthorizeURL)
		}
		if line.Phase == "connected" {
			connected[line.Server] = true
		}
	}, w.args("--missing")...)
	if code != cmdutil.ExitOK || len(connected) != 3 {
		t.Fatalf("exit code %d, connected %v: %s", code, connected, &errs)
	}
	for _, want := range []string{"Welcome to devbox", "last login: today", "disk is 91 % full"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("what the shell there said is not shown: %q: %s", want, &errs)
		}
	}
	for name := range by {
		var out, errs bytes.Buffer
		if got := w.far(nil, &out, &errs, "call", name, "add", "a=1", "b=2"); got != cmdutil.ExitOK || out.String() != "3\n" {
			t.Errorf("call %s there: exit code %d, %q, %s", name, got, &out, &errs)
		}
	}
	w.sweep(t, one, two)
	if left, err := os.ReadDir(w.nearHome); err != nil || len(left) != 0 {
		t.Errorf("something was written here: %v, %v", left, err)
	}
}

// sweep looks at every byte that crossed the line.
func (w *courierWorld) sweep(t *testing.T, servers ...*fake.AuthServer) {
	t.Helper()
	to, err := os.ReadFile(w.toFar)
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.ReadFile(w.fromFar)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	for _, as := range servers {
		for _, e := range as.Requests(fake.EventToken, "authorization_code") {
			verifier := e.Param("code_verifier")
			if verifier == "" || bytes.Contains(to, []byte(verifier)) || bytes.Contains(from, []byte(verifier)) {
				t.Errorf("the verifier of a login crossed the line, or was not used")
			}
			if bytes.Contains(to, []byte(e.Param("code"))) {
				codes++
			}
		}
	}
	if codes != 3 {
		t.Errorf("%d codes crossed the line: the sweep looks at the wrong thing", codes)
	}
	for name, text := range map[string][]byte{"to the far machine": to, "from the far machine": from} {
		if found := regexp.MustCompile(`\b(at|rt|rat|secret)-[A-Z2-7]{20,}`).Find(text); found != nil {
			t.Errorf("a token crossed the line %s: %.12s…", name, found)
		}
	}
	if bytes.Contains(from, []byte("code-")) {
		t.Error("a code came back")
	}
}

// TestCourierInterrupted ends the near side while logins wait: they go on to wait on
// the far machine, and the next courier takes the same ones up.
func TestCourierInterrupted(t *testing.T) {
	as := fake.NewAuth(nil)
	w := newCourierWorld(t, map[string]string{"notes": protected(t, as), "mail": protected(t, as)})
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	first := map[string]string{}
	var errs saidBuffer
	if code := w.near(ctx, t, &errs, func(line courierJSON) {
		if line.Status == "pending" {
			if first[line.Server] = line.State; len(first) == 2 {
				interrupt()
			}
		}
	}, w.args("--all")...); code != cmdutil.ExitWaiting {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	var out bytes.Buffer
	if w.far(nil, &out, io.Discard, "status"); strings.Count(out.String(), "waiting for you") != 2 {
		t.Errorf("there is not a login waiting for each there: %s", &out)
	}
	second := map[string]string{}
	if code := w.near(t.Context(), t, &errs, func(line courierJSON) {
		if line.Status == "pending" {
			second[line.Server] = line.State
			go consentTo(t, as, line.AuthorizeURL)
		}
	}, w.args("--all")...); code != cmdutil.ExitOK {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("other logins were begun (-first +second):\n%s", diff)
	}
}

// TestCourierNoLine is what a person reads when the line cannot be had.
func TestCourierNoLine(t *testing.T) {
	w := newCourierWorld(t, map[string]string{"notes": "https://notes.example/mcp"})
	shell := func(script string) []string { return []string{"sh", "-c", script, "sh"} }
	for name, tt := range map[string]struct {
		words, flags []string
		code         int
		want         []string
	}{
		"no such command":  {[]string{"no-such-program"}, []string{"--all"}, cmdutil.ExitError, []string{"run no-such-program", "--courier ssh HOST"}},
		"no usher there":   {shell(`exec "$@"`), []string{"--all", "--far-usher", "/no/such/usher"}, cmdutil.ExitError, []string{"usher was not found there", "--far-usher PATH"}},
		"older usher":      {shell(`echo "unknown flag: --courier-far" >&2; exit 2`), []string{"--all"}, cmdutil.ExitError, []string{"does not know couriers", "update it there", "unknown flag"}},
		"not reached":      {shell(`echo "ssh: connect: refused" >&2; exit 255`), []string{"--all"}, cmdutil.ExitError, []string{"was not reached", "connect: refused"}},
		"ended early":      {[]string{"true"}, []string{"--all"}, cmdutil.ExitError, []string{"ended before usher there was done"}},
		"newer usher":      {shell(`echo 'usher-courier-far {"kind":"hello","hello":{"protocol":99,"usher":"v9"}}'; cat >/dev/null`), []string{"--all"}, cmdutil.ExitError, []string{"the other machine has v9", "update the older one"}},
		"nonsense":         {shell(`echo 'usher-courier-far {"kind":'; cat >/dev/null`), []string{"--all"}, cmdutil.ExitError, []string{"cannot be read"}},
		"its own words":    {w.words, []string{"--all", "--far-usher", w.there, "--", "nots"}, cmdutil.ExitError, []string{`"nots"`, "notes"}},
		"nothing to do":    {[]string{"true"}, nil, cmdutil.ExitUsage, []string{"--courier needs --all"}},
		"no command":       {nil, []string{"--all"}, cmdutil.ExitUsage, []string{"--courier"}},
		"with device code": {[]string{"true"}, []string{"--all", "--device"}, cmdutil.ExitUsage, []string{"device"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"login"}
			flags, names := tt.flags, []string(nil)
			if i := slices.Index(flags, "--"); i >= 0 {
				flags, names = flags[:i], flags[i:]
			}
			args = append(append(append(append(args, flags...), "--courier"), tt.words...), names...)
			var errs saidBuffer
			code := w.near(t.Context(), t, &errs, func(courierJSON) {}, args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(errs.String(), want) {
					t.Errorf("%q is missing in: %s", want, &errs)
				}
			}
		})
	}
}

// TestCourierWords keeps the flags of the far command out of ours.
func TestCourierWords(t *testing.T) {
	root := newRoot(&cmdutil.Factory{})
	for in, want := range map[string]string{
		"login --all --courier ssh -p 22 host":                   "login --all --courier=ssh --courier=-p --courier=22 --courier=host",
		"login --courier ssh host -- linear":                     "login --courier=ssh --courier=host -- linear",
		"-v login --all --courier ssh --all":                     "-v login --all --courier=ssh --courier=--all",
		"login --courier":                                        "login --courier",
		"login -- --courier":                                     "login -- --courier",
		"call x y --courier ssh":                                 "call x y --courier ssh",
		"login --all --courier=ssh --courier=host --json linear": "login --all --courier=ssh --courier=host --json linear",
	} {
		if got := strings.Join(login.CourierWords(root, strings.Fields(in)), " "); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}
