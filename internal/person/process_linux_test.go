package person

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// started runs a shell whose grandchild is a sleeping process without the markers of
// its environment, and returns the id of the grandchild.
func started(t *testing.T, env ...string) int {
	t.Helper()
	return startedBy(t, "sh", `env -i sh -c 'echo $$; read -r line' ; :`, env...)
}

// startedBy runs a script with a shell, and returns the process id that it prints first.
func startedBy(t *testing.T, shell, script string, env ...string) int {
	t.Helper()
	cmd := exec.Command(shell, "-c", script)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // its input has ended
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// env -u and env -i take a marker away from a command, not from the shell above it.
func TestAncestor(t *testing.T) {
	if got := ancestor(started(t, "CLAUDECODE=1")); got != "Claude Code" {
		t.Errorf("the agent above is %q, want Claude Code", got)
	}
	pid := started(t, "CLAUDECODE=1")
	asker := Asker{LookupEnv: lookup(), Terminal: true, PID: pid, Dir: t.TempDir()}
	if err := asker.Check(); !errors.Is(err, ErrNeeded) {
		t.Errorf("a terminal below an agent: %v, want a refusal", err)
	}
	dir := t.TempDir()
	token, err := NewToken(dir)
	if err != nil {
		t.Fatal(err)
	}
	asker.Dir, asker.LookupEnv = dir, lookup(TokenVariable+"="+token)
	if err := asker.Check(); err != nil {
		t.Errorf("the script token below an agent: %v", err)
	}
}

// A shell that an agent starts can replace itself by a program without the markers. The
// agent above it, whose own environment has no marker, is recognised by its program.
func TestAncestorByProgram(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	const script = `CLAUDECODE=1 sh -c 'exec env -u CLAUDECODE sh -c "echo \$\$; read -r line"' ; :`
	agent := filepath.Join(t.TempDir(), "claude")
	if err := os.Symlink(sh, agent); err != nil {
		t.Fatal(err)
	}
	pid := startedBy(t, agent, script)
	if got := ancestor(pid); got != "Claude Code" {
		t.Errorf("the agent above is %q, want Claude Code", got)
	}
	asker := Asker{LookupEnv: lookup(), Terminal: true, PID: pid, Dir: t.TempDir()}
	if err := asker.Check(); !errors.Is(err, ErrNeeded) {
		t.Errorf("a terminal below a shell that replaced itself: %v, want a refusal", err)
	}
	other := filepath.Join(t.TempDir(), "claudette")
	if err := os.Symlink(sh, other); err != nil {
		t.Fatal(err)
	}
	if got := ancestor(startedBy(t, other, script)); got != "" {
		t.Errorf("a program of another name is taken for %q", got)
	}
}

// An agent does not get out of sight by putting many shells between itself and usher.
func TestAncestorBehindManyShells(t *testing.T) {
	script := filepath.Join(t.TempDir(), "nest")
	const text = `if [ "$1" -gt 0 ]; then sh "$0" $(($1 - 1)); else echo $$; read -r line; fi; :`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	pid := startedBy(t, "sh", "env -i PATH=\"$PATH\" sh "+script+" "+strconv.Itoa(maxAncestors)+" ; :", "CLAUDECODE=1")
	if got := ancestor(pid); got == "" {
		t.Error("the agent above is not recognised, and the chain is not refused")
	}
	asker := Asker{LookupEnv: lookup(), Terminal: true, PID: pid, Dir: t.TempDir()}
	if err := asker.Check(); !errors.Is(err, ErrNeeded) {
		t.Errorf("a terminal below many shells: %v, want a refusal", err)
	}
}

func TestPeer(t *testing.T) {
	pid := started(t)
	dir := t.TempDir()
	token, err := NewToken(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		peer Peer
		want error
	}{
		"says nothing":             {Peer{PID: pid, Dir: dir}, ErrNeeded},
		"lies about its terminal":  {Peer{PID: pid, Terminal: true, Dir: dir}, ErrNeeded},
		"has the token":            {Peer{PID: pid, Token: token, Dir: dir}, nil},
		"has another token":        {Peer{PID: pid, Token: token[1:], Dir: dir}, ErrNeeded},
		"unknown to the system":    {Peer{Terminal: true, Dir: dir}, nil},
		"unknown, without a claim": {Peer{Dir: dir}, ErrNeeded},
		"gone":                     {Peer{PID: 1 << 30, Terminal: true, Dir: dir}, ErrNeeded},
	} {
		if err := tt.peer.Check(); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

func TestParseStat(t *testing.T) {
	for text, want := range map[string]stat{
		"12 (sh) S 7 12 12 34816 12 0":        {"sh", 7, true},
		"12 (a) S 1 (b)) S 7 12 12 0 -1 4194": {"a) S 1 (b)", 7, false},
	} {
		if got, ok := parseStat(text); !ok || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "12 (sh", "12 (sh) S 7", "12 (sh) S x 1 1 0 1"} {
		if _, ok := parseStat(text); ok {
			t.Errorf("%q was read", text)
		}
	}
}
