package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/person"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/test/need"
)

var update = flag.Bool("update", false, "write what commands print into the scripts' files")

func TestMain(m *testing.M) {
	process.Main() // the guard around a child is this binary too
	run := runner(func() int {
		for _, name := range person.Markers() {
			_ = os.Unsetenv(name) // a developer's agent may run the tests
		}
		code := m.Run()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
		return code
	})
	testscript.Main(run, map[string]func(){
		"usher": func() { os.Exit(Main(os.Args[1:], cmdutil.System())) },
		// Children get a clean environment, so GORACE cannot keep the race detector
		// from sleeping for a second at their end; not telling it does.
		"fake": func() { syscall.Exit(fake.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

type runner func() int

func (r runner) Run() int { return r() }

// TestScript runs every script of testdata/script: the commands as people type
// them, each script with a home of its own.
func TestScript(t *testing.T) { runScripts(t, "testdata/script", nil) }

// TestServersFromNPM runs the scripts that need Node and published servers.
func TestServersFromNPM(t *testing.T) {
	env := map[string]string{
		"NODE":       need.Node(t),
		"EVERYTHING": need.NPM(t, "server-everything"),
		"FILESYSTEM": need.NPM(t, "server-filesystem"),
		"MEMORY":     need.NPM(t, "server-memory"),
	}
	runScripts(t, "testdata/npm", env)
}

func runScripts(t *testing.T, dir string, env map[string]string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: dir, UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			for name, value := range env {
				e.Setenv(name, value)
			}
			return setupScript(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "cmpjson": cmpJSON, "mode": mode, "await": await, "awaitline": awaitLine, "freeport": freePort, "allgone": allGone,
			"eventually": eventually,
		},
	})
}

// setupScript gives a script a home, and nothing of the real one.
func setupScript(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	e.Setenv("HOME", home)
	e.Setenv("USHER_HOME", filepath.Join(e.WorkDir, "usher"))
	if err := scriptToken(e); err != nil {
		return err
	}
	e.Setenv("GORACE", "atexit_sleep_ms=0")
	e.Setenv("NO_COLOR", "1")
	e.Setenv("TZ", "UTC")
	return os.MkdirAll(home, 0o700)
}

// scriptToken lets a script do what needs a person.
func scriptToken(e *testscript.Env) error {
	token, err := person.NewToken(e.Getenv("USHER_HOME"))
	e.Setenv(person.TokenVariable, token)
	return err
}

// exits runs a command and wants this exit code: exits 10 usher call …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// cmpJSON compares two JSON files, stdout or stderr by what they mean. Variables
// in the second are filled in.
func cmpJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cmpjson GOT WANT")
	}
	parse := func(name, text string) (v any) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			ts.Fatalf("%s: %v\n%s", name, err, text)
		}
		return v
	}
	want := strings.ReplaceAll(ts.ReadFile(args[1]), "$WORK", ts.Getenv("WORK"))
	if diff := cmp.Diff(parse(args[1], want), parse(args[0], ts.ReadFile(args[0]))); diff != "" {
		ts.Fatalf("(-want +got)\n%s", diff)
	}
}

// mode checks the permissions of a file: mode 0600 FILE
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode OCTAL FILE")
	}
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

// freePort sets a variable to a port that nobody uses: freeport PORT
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport VARIABLE")
	}
	port, err := need.Port()
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(port))
}

// await waits until somebody listens: await PORT
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await PORT")
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1500 {
		conn, err := net.Dial("tcp", "127.0.0.1:"+args[0])
		if err == nil {
			conn.Close()
			return
		}
		<-tick.C
	}
	ts.Fatalf("nobody listens on port %s", args[0])
}

// awaitLine waits until a file holds a text: awaitline FILE TEXT
func awaitLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: awaitline FILE TEXT")
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1500 {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Contains(string(text), args[1]) {
			return
		}
		<-tick.C
	}
	ts.Fatalf("%s never held %q", args[0], args[1])
}

// allGone waits until no process of the script is left: allgone 5s
func allGone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: allgone DURATION")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var left []string
	for end := time.Now().Add(limit); time.Now().Before(end); <-tick.C {
		if left = processesIn(ts.Getenv("WORK")); len(left) == 0 {
			return
		}
	}
	ts.Fatalf("still there after %s: %s", limit, strings.Join(left, ", "))
}

// processesIn lists the processes whose environment names dir: children inherit
// the script's home.
func processesIn(dir string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var out []string
	for _, f := range files {
		env, err := os.ReadFile(f) // gone, or not ours
		if err == nil && strings.Contains(string(env), dir) {
			cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
			out = append(out, strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return out
}

// eventually repeats a command until its standard output fits: eventually REGEXP
// COMMAND ARGS…
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually REGEXP COMMAND ARGS…")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 200 {
		_ = ts.Exec(args[1], args[2:]...) // what it prints counts, not how it ends
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		<-tick.C
	}
	ts.Fatalf("%s never printed %q", strings.Join(args[1:], " "), args[0])
}
