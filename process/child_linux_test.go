package process

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEcho(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			c := start(t, testOptions(mark(t), k.shim, "echo"))
			in := bufio.NewReader(c.Stdout())
			for _, line := range []string{"one\n", strings.Repeat("x", 200_000) + "\n"} {
				go io.WriteString(c.Stdin(), line)
				got, err := in.ReadString('\n')
				if err != nil || got != line {
					t.Fatalf("got %d bytes, %v", len(got), err)
				}
			}
			if p, ok := lookup(c.Pid()); !ok || p.pgid != c.Pid() {
				t.Errorf("child %d is in group %d, want its own", c.Pid(), p.pgid)
			}
			if err := c.Err(); err != nil {
				t.Errorf("Err before the end: %v", err)
			}
			if err := c.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := c.Err(); err != nil {
				t.Errorf("Err = %v, want nil for exit code 0", err)
			}
		})
	}
}

func TestLadder(t *testing.T) {
	killed := &ExitError{Code: -1, Signal: "SIGKILL"}
	const short, soon = 100 * time.Millisecond, 150 * time.Millisecond
	tests := []struct {
		mode        string
		grace, kill time.Duration // the step at which it ends is long, for a slow machine
		want        *ExitError
		min, max    time.Duration
	}{
		{"wait", patience, patience, nil, 0, patience},
		{"hear", short, patience, &ExitError{Code: 7}, short, short + patience},
		{"deaf", short, soon, killed, short + soon, time.Hour},
		{"fork", short, soon, killed, short + soon, time.Hour},
		{"setsid", short, soon, killed, short + soon, time.Hour},
		{"daemon", short, soon, killed, short + soon, time.Hour},
		{"abandon", short, soon, &ExitError{Code: 4}, 0, time.Hour},
	}
	for _, k := range kinds {
		for _, tt := range tests {
			t.Run(k.name+"/"+tt.mode, func(t *testing.T) {
				t.Parallel()
				m := mark(t)
				opt := testOptions(m, k.shim, tt.mode)
				opt.Grace, opt.Kill = tt.grace, tt.kill
				c := start(t, opt)
				ready(t, c)
				begin := time.Now()
				if err := c.Stop(); err != nil {
					t.Fatal(err)
				}
				took := time.Since(begin)
				if left := marked(m); len(left) > 0 {
					t.Errorf("left when Stop returned: %v", left)
				}
				if took < tt.min || took > tt.max {
					t.Errorf("took %v, want between %v and %v", took, tt.min, tt.max)
				}
				got, _ := errors.AsType[*ExitError](c.Err())
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("Err (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestEndsByItself(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			c := start(t, testOptions(mark(t), k.shim, "exit", "3"))
			<-c.Done()
			if got := c.Err(); got == nil || got.Error() != "exited with code 3" {
				t.Errorf("Err = %v", got)
			}
			// What it wrote is readable after it is gone and all is closed.
			out, err := io.ReadAll(c.Stdout())
			if err != nil || string(out) != "last words" {
				t.Errorf("stdout %q, %v", out, err)
			}
			lines := c.Stderr().Lines()
			if len(lines) != 1 || lines[0].Text != "leaving" {
				t.Errorf("stderr %v", lines)
			}
			if err := c.Stop(); err != nil {
				t.Errorf("Stop after the end: %v", err)
			}
		})
		t.Run(k.name+"/signal", func(t *testing.T) {
			opt := testOptions(mark(t), k.shim, "")
			opt.Command, opt.Args = "sh", []string{"-c", "kill -SEGV $$"}
			c := start(t, opt)
			<-c.Done()
			if got := c.Err(); got == nil || got.Error() != "killed by SIGSEGV" {
				t.Errorf("Err = %v", got)
			}
		})
	}
}

// The answer a child writes while it leaves is not lost.
func TestLastWordsDuringStop(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			opt := testOptions(mark(t), k.shim, "farewell")
			opt.Grace = patience
			c := start(t, opt)
			if err := c.Stop(); err != nil {
				t.Fatal(err)
			}
			out, err := io.ReadAll(c.Stdout())
			if err != nil || string(out) != "ready\nfarewell\n" {
				t.Errorf("stdout %q, %v", out, err)
			}
		})
	}
}

// The ends of the pipes are the child's alone: what it closes is closed.
func TestChildClosesItsPipes(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			opt := testOptions(mark(t), k.shim, "")
			opt.Command, opt.Args = "sh", []string{"-c", "exec <&- >&- 2>&-; sleep 300"}
			c := start(t, opt)
			if out, err := io.ReadAll(c.Stdout()); len(out) > 0 || err != nil {
				t.Errorf("read %q, %v", out, err)
			}
			if _, err := io.WriteString(c.Stdin(), "x"); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("write: %v", err)
			}
			if !exists(c.Pid()) {
				t.Error("the child is gone")
			}
		})
	}
}

func TestStopConcurrently(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			c := start(t, testOptions(mark(t), k.shim, "deaf"))
			ready(t, c)
			// A writer that the child never reads, and a reader without news.
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := c.Stdin().Write(make([]byte, 1<<20)); err == nil {
					t.Error("a write nobody read succeeded")
				}
			})
			wg.Go(func() { io.Copy(io.Discard, c.Stdout()) })
			for range 8 {
				wg.Go(func() {
					if err := c.Stop(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Go(func() { c.Stdin().Close() })
			wg.Wait()
		})
	}
}

func TestKill(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			opt := testOptions(mark(t), k.shim, "setsid")
			opt.Grace, opt.Kill = time.Minute, time.Minute
			c := start(t, opt)
			ready(t, c)
			var wg sync.WaitGroup
			wg.Go(func() { c.Stop() })
			begin := time.Now()
			if err := c.Kill(); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
			if took := time.Since(begin); took > patience {
				t.Errorf("took %v", took)
			}
		})
	}
}

// A child that never looks at its standard error pipe filling up is not held up.
func TestStderrFlood(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			c := start(t, testOptions(mark(t), k.shim, "flood"))
			ready(t, c)
			if err := c.Stop(); err != nil {
				t.Fatal(err)
			}
			held := 0
			for _, l := range c.Stderr().Lines() {
				held += len(l.Text) + 1
			}
			if held > DefaultStderrBytes || held < DefaultStderrBytes/2 {
				t.Errorf("holds %d bytes", held)
			}
			if total := uint64(held) + c.Stderr().Dropped(); total != 10<<20/100*100 {
				t.Errorf("held and dropped are %d bytes", total)
			}
		})
	}
}

func TestArgumentsStayLiteral(t *testing.T) {
	dir := t.TempDir()
	hostile := []string{
		"; touch " + dir + "/X", "$(touch " + dir + "/X)", "`touch " + dir + "/X`", "a b", "", "*", "~", "'", `"`,
		"| cat", "&", "> " + dir + "/X", "$HOME", "new\nline", "\xff\xfe", "--", "-c",
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			opt := testOptions(mark(t), k.shim, "args", hostile...)
			opt.Dir = dir
			c := start(t, opt)
			var got []string
			if err := json.NewDecoder(c.Stdout()).Decode(&got); err != nil {
				t.Fatal(err)
			}
			want := append([]string{os.Args[0], "child=args"}, hostile...)
			for i, w := range want {
				want[i] = strings.ToValidUTF8(w, "\ufffd\ufffd") // as JSON does, byte by byte
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("argv (-want +got):\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(dir, "X")); err == nil {
				t.Error("an argument was executed")
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("PROCESS_TEST_CANARY", "leaked")
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			opt := testOptions(mark(t), k.shim, "env")
			opt.Env = append(opt.Env, "BYTES=\xff=")
			c := start(t, opt)
			out, err := io.ReadAll(c.Stdout())
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(out, []byte("leaked")) {
				t.Errorf("canary in %s", out)
			}
			var got []string
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			want := append([]string(nil), opt.Env...)
			want[len(want)-1] = "BYTES=\ufffd="
			if k.shim == "" {
				marker := got[len(got)-1]
				if !strings.HasPrefix(marker, markerName+"=") {
					t.Errorf("last variable is %q", marker)
				}
				want = append(withoutMarker(want), marker)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

// No descriptor but the standard three reaches a child, not even one that this
// process holds without close-on-exec.
func TestDescriptorsOfChild(t *testing.T) {
	leaky, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer leaky.Close()
	dup, err := syscall.Dup(int(leaky.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(dup)
	opt := testOptions(mark(t), Self(), "")
	opt.Command, opt.Args = "sleep", []string{"300"}
	c := start(t, opt)
	open := func() (names []string) {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.Pid()))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	want := []string{"0", "1", "2"}
	// While it starts it reads its locale.
	if !eventually(t, patience, func() bool { return slices.Equal(open(), want) }) {
		t.Errorf("descriptors %v, want %v", open(), want)
	}
	// Programs expect reads and writes that wait; this process's own ends do not.
	for _, fd := range want {
		info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", c.Pid(), fd))
		if err != nil {
			t.Fatal(err)
		}
		var pos, flags int
		if _, err := fmt.Sscanf(string(info), "pos: %d\nflags: %o", &pos, &flags); err != nil || flags&syscall.O_NONBLOCK != 0 {
			t.Errorf("descriptor %s has flags %o, %v", fd, flags, err)
		}
	}
}
