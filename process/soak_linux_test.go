package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// forest is a shell script whose every process ignores the polite signals and its
// input: itself, one in its group, one in a session of its own, and a daemon.
const forest = `trap '' TERM INT HUP
sleep 300 &
setsid sleep 300 &
(setsid sh -c 'sleep 300 >/dev/null 2>&1 </dev/null &' &)
echo ready
while :; do sleep 300; done`

func forestOptions(m, shim string) Options {
	opt := testOptions(m, shim, "")
	opt.Command, opt.Args = "sh", []string{"-c", forest}
	return opt
}

// cycles starts and stops n children, a few at a time, and returns how long the
// slowest stop took.
func cycles(t *testing.T, n, width int, opt Options) time.Duration {
	t.Helper()
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex // guards slowest
		slowest time.Duration
	)
	tickets := make(chan struct{}, n)
	for range n {
		tickets <- struct{}{}
	}
	close(tickets)
	for range width {
		wg.Go(func() {
			for range tickets {
				c, err := Start(t.Context(), opt)
				if err != nil {
					t.Error(err)
					return
				}
				if line, err := bufio.NewReader(c.Stdout()).ReadString('\n'); err != nil {
					t.Errorf("first line %q, %v", line, err)
				}
				begin := time.Now()
				if err := c.Stop(); err != nil {
					t.Error(err)
				}
				took := time.Since(begin)
				mu.Lock()
				slowest = max(slowest, took)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return slowest
}

// nothingLeft compares with a state from before the cycles.
func nothingLeft(t *testing.T, m string, before []string) {
	t.Helper()
	if left := marked(m); len(left) > 0 {
		t.Errorf("%d processes left, first %s", len(left), cmdline(left[0]))
	}
	// Shims that have nothing left to guard leave by themselves; nobody waits for that,
	// nor for what is held of them.
	if !eventually(t, patience, func() bool { return len(childrenOf(t, os.Getpid())) == 0 }) {
		t.Errorf("children left, zombies maybe: %v", childrenOf(t, os.Getpid()))
	}
	if !eventually(t, patience, func() bool { return len(descriptors(t)) <= len(before) }) {
		t.Errorf("descriptors before %v, after %v", before, descriptors(t))
	}
}

func TestManyCycles(t *testing.T) {
	for _, tt := range []struct {
		name, shim         string
		short, withDefault int
	}{
		{"shim", Self(), 200, 10},
		{"direct", "", 40, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := mark(t)
			short := forestOptions(m, tt.shim)
			byDefault := short
			byDefault.Grace, byDefault.Kill = 0, 0
			cycles(t, 1, 1, short) // the poller's own descriptor comes with the first use
			alone(t)
			before := descriptors(t)
			var wg sync.WaitGroup
			wg.Go(func() {
				begin := time.Now()
				slowest := cycles(t, tt.short, 16, short)
				t.Logf("%d cycles in %v, slowest stop %v", tt.short, time.Since(begin), slowest)
			})
			wg.Go(func() {
				slowest := cycles(t, tt.withDefault, tt.withDefault, byDefault)
				t.Logf("default ladder, slowest stop %v", slowest)
				// Many servers stop together within six seconds.
				if tt.withDefault > 0 && (slowest < DefaultGrace+DefaultKill || slowest > promised(6*time.Second)) {
					t.Errorf("default ladder took %v, want between 5 and 6 s", slowest)
				}
			})
			wg.Wait()
			nothingLeft(t, m, before)
		})
	}
}

// startHost runs a host with one child of every mode and returns it ready.
func startHost(t *testing.T, m, shim, registry string, modes ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"child=host", shim, registry}, modes...)...)
	cmd.Env = append(os.Environ(), m)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("host says %q, %v", line, err)
	}
	return cmd
}

func TestHostKilled(t *testing.T) {
	m := mark(t)
	host := startHost(t, m, Self(), "", "wait", "hear", "deaf", "fork", "setsid", "daemon")
	shims := childrenOf(t, host.Process.Pid)
	if len(shims) != 6 {
		t.Fatalf("host has children %v, want six shims", shims)
	}
	if n := len(marked(m)); n != 10 {
		t.Fatalf("%d processes run, want the host, its 6 children and 3 grandchildren", n)
	}
	host.Process.Kill()
	host.Wait()
	begin := time.Now()
	gone := eventually(t, promised(5*time.Second), func() bool {
		return len(marked(m)) == 0 && !slices.ContainsFunc(shims, exists)
	})
	t.Logf("all gone after %v", time.Since(begin))
	if !gone {
		t.Errorf("processes left %v after the host was killed", time.Since(begin))
	}
}

// The child itself also ends when its shim goes together with the host, and where
// there is no shim at all.
func TestChildDiesWithItsStarter(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			m := mark(t)
			host := startHost(t, m, k.shim, "", "deaf")
			// Stopped, the host cannot clean up after the shim.
			host.Process.Signal(syscall.SIGSTOP)
			for _, pid := range childrenOf(t, host.Process.Pid) {
				if k.shim != "" {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			host.Process.Kill()
			host.Wait()
			if !eventually(t, patience, func() bool { return len(marked(m)) == 0 }) {
				t.Error("the child outlives its starter")
			}
		})
	}
}

func exists(pid int) bool { return startTime(pid) != 0 }

// A killed host without a shim leaves grandchildren; the next start ends them, and
// nothing else.
func TestReap(t *testing.T) {
	m := mark(t)
	dir := filepath.Join(t.TempDir(), "children")
	host := startHost(t, m, "", dir, "fork", "setsid", "daemon", "wait")
	mine := start(t, Options{
		Command: "sleep", Args: []string{"300"}, Registry: dir,
		Env: append(SafeEnv(os.Environ(), nil), m), Grace: -1, Kill: -1,
	})

	if n, err := Reap(t.Context(), dir); n != 0 || err != nil {
		t.Fatalf("Reap while all hosts live = %d, %v", n, err)
	}
	if n := len(marked(m)); n != 9 {
		t.Fatalf("%d processes run, want 9", n)
	}
	host.Process.Kill()
	host.Wait()
	n, err := Reap(t.Context(), dir)
	if err != nil || n < 3 {
		t.Errorf("Reap = %d, %v; want at least the three with grandchildren", n, err)
	}
	if left := marked(m); !slices.Equal(left, []int{mine.Pid()}) {
		t.Errorf("left %v, want only %d", left, mine.Pid())
	}
	if err := mine.Stop(); err != nil {
		t.Error(err)
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("records left: %v", files)
	}
}

// Without descriptors Start fails, soon and without a trace, and works again later.
func TestFewDescriptors(t *testing.T) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			m := mark(t)
			start(t, testOptions(m, k.shim, "echo")).Stop()
			alone(t)
			before := descriptors(t)
			few := old
			few.Cur = uint64(len(before) + 12)
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var children []*Child
			var failed error
			for failed == nil && len(children) < 10 {
				var c *Child
				if c, failed = Start(ctx, testOptions(m, k.shim, "echo")); failed == nil {
					children = append(children, c)
				}
			}
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
				t.Fatal(err)
			}
			if failed == nil || len(children) == 0 {
				t.Errorf("%d children started, then %v", len(children), failed)
			}
			for _, c := range children {
				c.Stop()
			}
			nothingLeft(t, m, before)
		})
	}
}

func BenchmarkStart(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			m := mark(b)
			for b.Loop() {
				opt := testOptions(m, k.shim, "")
				opt.Command, opt.Args = "cat", nil
				c, err := Start(b.Context(), opt)
				if err != nil {
					b.Fatal(err)
				}
				// The first answer, which is what a caller waits for.
				fmt.Fprintln(c.Stdin(), "x")
				if _, err := io.ReadFull(c.Stdout(), make([]byte, 2)); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := c.Stop(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
