package process

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A shim is recognised by its name and this variable together; the child
	// sees neither. The name does not contain the host's, so that somebody who
	// kills the host by name leaves the shim to clean up.
	shimName     = "stdio-shim"
	shimVariable = "STDIO_SHIM_LINK"
	shimLink     = 3
)

// Exit codes of the shim itself, seen only when the host does not hear it.
const (
	shimFailed    = 125
	shimNotExeced = 127
)

// How often, and how quickly, children are killed before the next full look.
const (
	peelings  = 50
	peelPause = 200 * time.Microsecond
)

// Main is the entry of the shim and belongs on the first line of main. It returns
// at once when this process is not a shim; otherwise it never returns.
func Main() {
	if len(os.Args) == 0 || os.Args[0] != shimName || os.Getenv(shimVariable) != strconv.Itoa(shimLink) {
		return
	}
	// The child's parent-death signal is bound to this thread.
	runtime.LockOSThread()
	// Not os.Exit: a shim has no exit handlers worth waiting for, and the race
	// detector's would sleep.
	syscall.Exit(shim())
}

// Self returns the value for Options.Shim that names this very program. It stays
// right when the file is replaced by an upgrade.
func Self() string { return "/proc/self/exe" }

// shim runs one child and outlives all it starts.
func shim() int {
	if err := becomeReaper(); err != nil {
		return shimFailed
	}
	events := make(chan event, 16)
	hear(events)
	cleanSignals()
	kind, body, err := readFrame(plain(shimLink))
	if err != nil || kind != frameSpec {
		return shimFailed
	}
	s, err := decodeSpec(body)
	if err != nil {
		return shimFailed
	}
	pid, err := syscall.ForkExec(s.path, s.argv, &syscall.ProcAttr{
		Dir: s.dir, Env: s.env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		_ = writeNumber(plain(shimLink), frameFailed, int(errnoOf(err))) // a dead host needs no answer
		return shimNotExeced
	}
	t := &shimTree{pid: pid}
	if err := writeNumber(plain(shimLink), framePid, pid); err != nil {
		events <- eventOrphaned
	}
	letGo()
	_ = unix.SetNonblock(shimLink, true) // else it takes a thread to listen
	link := os.NewFile(shimLink, "link")
	go listen(link, events)
	l := &ladder{tree: t, grace: s.grace, kill: s.kill}
	l.run(events)
	_ = writeNumber(link, frameOutcome, int(t.status)) // as above
	return exitCode(t.status)
}

// plain is a descriptor that blocks, for as long as there is nothing else to do: the
// poller, and the threads that come with it, are not needed to start a child.
type plain int

func (p plain) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(p), b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Write is for frames that are smaller than any buffer between two processes.
func (p plain) Write(b []byte) (int, error) { return unix.Write(int(p), b) }

// becomeReaper makes orphans of the tree come to this process, keeps every descriptor
// but the standard three from the child, and lets nobody look into this process.
func becomeReaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	// Kernels before 5.11 lack this; Go's own descriptors are closed anyway.
	_ = unix.CloseRange(shimLink, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	syscall.CloseOnExec(shimLink)
	// Only for those who look at a process list.
	if comm, err := unix.Open("/proc/self/comm", unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
		_, _ = unix.Write(comm, []byte(shimName))
		_ = unix.Close(comm)
	}
	// After that file was written, which then belongs to root: no server may look into
	// the shim of another, or make it do something else.
	return notDumpable()
}

// letGo gives up the pipes, which now are the child's alone: with a copy here,
// neither side would see the other's end.
func letGo() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := range 3 {
		if err != nil || unix.Dup3(null, fd, 0) != nil {
			unix.Close(fd)
		}
	}
	if err == nil {
		unix.Close(null)
	}
}

// listen turns the host's words, and its silence, into events.
func listen(link io.Reader, events chan<- event) {
	for {
		kind, _, err := readFrame(link)
		switch {
		case err != nil:
			events <- eventOrphaned
			return
		case kind == frameStop:
			events <- eventStop
		case kind == frameKill:
			events <- eventKill
		}
	}
}

// shimTree is everything below this process. Orphans become its children, so no
// child left means nothing left.
type shimTree struct {
	pid    int
	status syscall.WaitStatus
	ended  bool
}

func (t *shimTree) state() (ended, empty bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG|syscall.WALL, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return t.ended, true
		case pid == 0:
			return t.ended, false
		case pid == t.pid && !ws.Stopped() && !ws.Continued():
			t.ended, t.status = true, ws
		}
	}
}

func (t *shimTree) signalGroup(sig syscall.Signal) {
	f := family{pid: t.pid}
	f.signalGroup(sig)
}

func (t *shimTree) signalAll(sig syscall.Signal) {
	procs, err := below(os.Getpid())
	if err != nil {
		t.signalGroup(sig) // without /proc this is all that can be named
	}
	signalProcs(procs, sig)
	if sig == syscall.SIGKILL {
		t.peel()
	}
}

// peel kills the direct children, whose children then become direct ones, and so
// on. Seeing only these it is quicker than the look at all processes, and so
// catches those that fork and leave before they are found there. Where the kernel
// does not list children it only waits a little.
func (t *shimTree) peel() {
	for range peelings {
		if _, empty := t.state(); empty {
			return
		}
		for _, pid := range listedChildren() {
			// Not waited for yet, so the number is still theirs.
			_ = syscall.Kill(-pid, syscall.SIGKILL)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(peelPause)
	}
}

// listedChildren returns the direct children of this process, or some of very many;
// none where the kernel does not list them.
func listedChildren() (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is right
	for _, list := range lists {
		var buf [4096]byte
		text := string(readInto(buf[:], list))
		text = text[:strings.LastIndexByte(text, ' ')+1] // the last may be cut
		for field := range strings.FieldsSeq(text) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// below returns the descendants of a process.
func below(pid int) ([]proc, error) {
	table, err := processes()
	if err != nil {
		return nil, err
	}
	children := make(map[int][]proc)
	for _, p := range table {
		children[p.ppid] = append(children[p.ppid], p)
	}
	found := slices.Clone(children[pid])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found, nil
}

func exitCode(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return syscall.EINVAL
}
