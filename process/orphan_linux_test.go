package process

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The programs below are run by a shell whose parent is the shim. Each of them tells
// the process ids that must be gone, on standard output.
const (
	// killer ends the shim from a session of its own, with an empty environment.
	killer = `env -i setsid sh -c 'echo $$; kill -9 "$0"; exec sleep 300' $PPID & wait`
	// orphanKiller does the same from a daemon, whose parent is the shim itself.
	orphanKiller = `(env -i setsid sh -c 'sleep 300 & echo $! $$; kill -9 "$0"; wait' $PPID &); exec sleep 300`
	// deafKiller leaves a tree of four, in three sessions, that ignores all polite signals.
	deafKiller = `trap '' TERM INT HUP
env -i setsid sh -c 'trap "" TERM INT HUP; sleep 300 & a=$!; setsid sleep 300 & b=$!; echo $a $b $$; kill -9 "$0"; while :; do wait; done' $PPID &
wait`
	// restlessKiller hops from process to process after the shim is dead.
	restlessKiller = `env -i HOP="$HOP" setsid sh -c 'echo $$; setsid "$HOP" & kill -9 "$0"; exec sleep 300' $PPID & wait`
)

// A grandchild that kills the shim does not outlive its server, however it hides: the
// host is subreaper, see Adopt.
func TestShimKilledByGrandchild(t *testing.T) {
	for name, script := range map[string]string{
		"hidden": killer, "daemon": orphanKiller, "deaf": deafKiller, "restless": restlessKiller,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, line := range adoptingHost(t, "victim", script) {
				t.Error(line)
			}
		})
	}
}

// Signals that reach a shim in its first milliseconds, SIGKILL included, leave nothing
// behind.
func TestShimSignalledEarly(t *testing.T) {
	n := 50
	if os.Getenv("USHER_PROOF") == "1" {
		n = 1000
	}
	for _, line := range adoptingHost(t, "storm", strconv.Itoa(n)) {
		t.Error(line)
	}
}

// What belongs to the host itself is not taken for what a shim left: programs it
// started, their children, and the children of other shims.
func TestAdoptSpares(t *testing.T) {
	for _, line := range adoptingHost(t, "bystanders", "") {
		t.Error(line)
	}
}

// adoptingHost runs a host that adopts orphans, in a process of its own, and returns
// its complaints.
func adoptingHost(t *testing.T, what, argument string) []string {
	t.Helper()
	m := mark(t)
	limit := 3 * time.Minute
	if os.Getenv("USHER_PROOF") == "1" {
		limit = 20 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "child=adopt", what, argument)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it prints where it hangs
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), m, "GORACE=atexit_sleep_ms=0")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	if !strings.HasSuffix(out.String(), "done\n") {
		t.Fatalf("the host did not finish: %q %q", out.String(), errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[:len(lines)-1]
}

// adoptMain is the host of the tests above. It prints what went wrong.
func adoptMain(what, argument string) {
	// A shell that runs tests in the background ignores SIGINT and SIGQUIT, and so would
	// the shims until they have handlers: what they do not hear does not end them.
	cleanSignals()
	if err := Adopt(); err != nil {
		fmt.Println(err)
	}
	m := markName + "=" + os.Getenv(markName)
	switch what {
	case "victim":
		victim(m, argument)
	case "storm":
		n, _ := strconv.Atoi(argument)
		storm(m, n)
	case "bystanders":
		bystanders(m)
	}
	if left := marked(m); len(left) > 0 {
		fmt.Printf("%d processes left, the first is %q\n", len(left), cmdline(left[0]))
	}
	if zombies := unreaped(); len(zombies) > 0 {
		fmt.Println("not reaped:", zombies)
	}
	fmt.Println("done")
}

// victim runs a program that kills its shim.
func victim(m, script string) {
	dir, err := os.MkdirTemp("", "hop")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	hop := filepath.Join(dir, "hop")
	if err := os.WriteFile(hop, []byte("#!/bin/sh\nsetsid \"$0\" &\n"), 0o755); err != nil {
		panic(err)
	}
	opt := shellOptions(m, "read start\n"+script)
	opt.Env = append(opt.Env, "HOP="+hop)
	c, err := Start(context.Background(), opt)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.WriteString(c.Stdin(), "start\n") // it is running: it can be told
	line, err := bufio.NewReader(c.Stdout()).ReadString('\n')
	if err != nil {
		fmt.Println(err)
	}
	<-c.Done()
	if err := c.Stop(); err != nil {
		fmt.Println("stop:", err)
	}
	for _, text := range strings.Fields(line) {
		if pid, err := strconv.Atoi(text); err != nil || alive(pid) {
			fmt.Printf("process %s is left: %s\n", text, cmdline(pid))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if hops := withArgument(hop); len(hops) > 0 {
		fmt.Println("still hopping:", hops)
	}
}

// storm signals n shims, each at a random instant of its first milliseconds.
func storm(m string, n int) {
	begin := time.Now()
	c, err := Start(context.Background(), shellOptions(m, "exit"))
	if err != nil {
		fmt.Println(err)
		return
	}
	span := max(5*time.Millisecond, 2*time.Since(begin)) // the race detector's are slow
	<-c.Done()
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGKILL}
	var wg sync.WaitGroup
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for range 4 {
		wg.Go(func() {
			for i := range next {
				random := rand.New(rand.NewPCG(uint64(i), 0))
				strike(m, signals[i%len(signals)], time.Duration(random.Int64N(int64(span))))
			}
		})
	}
	wg.Wait()
}

// strike starts a child and signals its shim after a while.
func strike(m string, sig syscall.Signal, after time.Duration) {
	spare := NewSpare(Self(), "storm")
	shim := spare.guard.shim
	time.AfterFunc(after, func() { shim.signal(sig) })
	opt := shellOptions(m, `setsid sleep 300 & sh -c 'sleep 300 & sleep 300' & sleep 300`)
	opt.Spare, opt.Grace, opt.Kill = spare, time.Millisecond, 20*time.Millisecond
	c, err := Start(context.Background(), opt)
	if err != nil {
		return // it was too early for a child
	}
	<-c.Done()
	if err := c.Stop(); err != nil {
		fmt.Printf("%s after %s: stop: %v\n", unix.SignalName(sig), after, err)
	}
}

// bystanders runs programs that a sweep must not touch.
func bystanders(m string) {
	own := exec.Command("sleep", "300")
	left := exec.Command("sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!")
	out, err := left.Output()
	if err != nil || own.Start() != nil {
		panic(err)
	}
	orphan, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		panic(err)
	}
	direct := shellOptions(m, "exec sleep 300")
	direct.Shim = ""
	options := []Options{shellOptions(m, "setsid sleep 300 & wait"), direct}
	children := make([]*Child, 0, len(options))
	for _, opt := range options {
		c, err := Start(context.Background(), opt)
		if err != nil {
			panic(err)
		}
		children = append(children, c)
	}
	spare := NewSpare(Self(), "spare")
	victim(m, killer)
	for _, pid := range []int{own.Process.Pid, orphan, children[0].Pid(), children[1].Pid(), spare.guard.shim.pid} {
		if !alive(pid) {
			fmt.Println("a bystander is dead:", pid)
		}
	}
	spare.Close()
	for _, c := range children {
		if err := c.Stop(); err != nil {
			fmt.Println(err)
		}
	}
	_ = own.Process.Kill()
	_ = own.Wait()
	_ = syscall.Kill(orphan, syscall.SIGKILL)
	_, _ = syscall.Wait4(orphan, nil, 0, nil)
}

func shellOptions(m, script string) Options {
	opt := testOptions(m, Self(), "")
	opt.Command, opt.Args = "sh", []string{"-c", script}
	return opt
}

func alive(pid int) bool {
	p, ok := lookup(pid)
	return ok && !p.zombie
}

// unreaped returns what ended and was not waited for; shims may take a moment.
func unreaped() (pids []int) {
	deadline := time.Now().Add(patience)
	for {
		pids = nil
		table, _ := processes()
		for _, p := range table {
			if p.ppid == os.Getpid() {
				pids = append(pids, p.pid)
			}
		}
		if len(pids) == 0 || time.Now().After(deadline) {
			return pids
		}
		_, _ = unix.Poll(nil, 5) // milliseconds
	}
}

// withArgument returns the processes that have a program among their arguments.
func withArgument(program string) (pids []int) {
	table, _ := processes()
	for _, p := range table {
		if strings.Contains(cmdline(p.pid), program) && !p.zombie {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// A child begins with no signal blocked or ignored, whatever this process, or the one
// that started it, does with them.
func TestCleanSignals(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `trap '' HUP INT QUIT TERM PIPE TSTP TTIN TTOU CONT CHLD USR1; exec "$0" child=dispositions`, os.Args[0])
	cmd.Env = append(os.Environ(), mark(t), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		name, mask, _ := strings.Cut(line, ":")
		if n, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64); err != nil || n != 0 {
			t.Errorf("%s of the child is %s", name, mask)
		}
	}
	if !strings.Contains(string(out), "SigBlk") || !strings.Contains(string(out), "SigIgn") {
		t.Errorf("the child printed %q", out)
	}
}

// dispositions prints the signals that a child finds blocked or ignored.
func dispositions() {
	opt := shellOptions(markName+"="+os.Getenv(markName), "")
	opt.Command, opt.Args = "grep", []string{"-E", "SigBlk|SigIgn|ShdPnd", "/proc/self/status"}
	c, err := Start(context.Background(), opt)
	if err != nil {
		panic(err)
	}
	if _, err := io.Copy(os.Stdout, c.Stdout()); err != nil {
		panic(err)
	}
	<-c.Done()
}
