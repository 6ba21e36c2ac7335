package process

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// kinds are the two ways a child can be run.
var kinds = []struct{ name, shim string }{
	{"shim", Self()},
	{"direct", ""},
}

// mark returns a variable that names the processes of one test and kills those
// that are left at its end, so that one failure does not spoil the rest.
func mark(t testing.TB) string {
	m := markName + "=" + rand.Text()
	t.Cleanup(func() {
		for _, pid := range marked(m) {
			t.Errorf("process %d is left: %s", pid, cmdline(pid))
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return m
}

// testOptions runs this test binary as a child.
func testOptions(m, shim, mode string, args ...string) Options {
	return Options{
		Command: os.Args[0],
		Args:    append([]string{"child=" + mode}, args...),
		Env:     append(SafeEnv(os.Environ(), nil), m, "GORACE=atexit_sleep_ms=0"),
		Shim:    shim,
		Grace:   100 * time.Millisecond,
		Kill:    150 * time.Millisecond,
	}
}

// start also stops the child at the end of the test.
func start(t testing.TB, opt Options) *Child {
	t.Helper()
	c, err := Start(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	return c
}

// ready waits for the child's first line.
func ready(t testing.TB, c *Child) {
	t.Helper()
	line, err := bufio.NewReader(c.Stdout()).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("first line %q, %v; stderr %v", line, err, c.Stderr().Lines())
	}
}

// marked returns the living processes that carry the mark.
func marked(m string) []int {
	var pids []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(dir + "/environ")
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), m) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func cmdline(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(bytes.ReplaceAll(b, []byte{0}, []byte{' '}))
}

// childrenOf returns direct children, zombies included.
func childrenOf(t testing.TB, pid int) []int {
	t.Helper()
	table, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, p := range table {
		if p.ppid == pid {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// alone waits until nothing is left of the tests before: shims that have nothing to
// guard any more leave by themselves, and nobody waits for that.
func alone(t testing.TB) {
	t.Helper()
	if !eventually(t, patience, func() bool { return len(childrenOf(t, os.Getpid())) == 0 }) {
		t.Fatalf("children of earlier tests: %v", childrenOf(t, os.Getpid()))
	}
}

func descriptors(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open = append(open, e.Name()+" "+target)
		}
	}
	return open
}

// patience is for what happens soon, on a machine that may have much else to do.
const patience = 30 * time.Second

// promised is a bound of time that is held to on a machine that does nothing else: in
// the long form of the tests. In the other one there is patience.
func promised(d time.Duration) time.Duration {
	if os.Getenv("USHER_PROOF") == "1" {
		return d
	}
	return d + patience
}

// eventually looks every few milliseconds until ok or the time is over.
func eventually(t testing.TB, within time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ok()
		}
	}
	return true
}
