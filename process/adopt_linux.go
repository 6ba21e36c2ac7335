package process

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sweepFor bounds the attempts to end what a dead shim left.
const sweepFor = 5 * time.Second

// starts are the children that this process has started itself. The kernel has one
// list of children for a process, so there is one of these: a child that is not in it
// has been adopted.
var starts = startList{pids: map[int]int{}}

type startList struct {
	// mu guards the fields below. It is held from before a child is started until it
	// is in the list, so that a sweep never takes a new child for an adopted one.
	mu     sync.Mutex
	pids   map[int]int // how often: a number may be in use again before it is removed
	adopts bool
}

// Adopt makes this process a subreaper for as long as it runs: what a shim that was
// killed leaves behind becomes a child of this process, which then kills it. Without
// Adopt only what stayed in the session of the shim is found.
//
// It is for programs whose children are started by this package, or stay in the session
// of the program, as those of os/exec do by default. A child that the program itself
// starts in a session of its own may be killed when a shim is. Orphans of other children
// are adopted too, left alone, and not waited for.
//
// The main function of a program calls it after Main. Only Linux needs it.
func Adopt() error {
	starts.mu.Lock()
	defer starts.mu.Unlock()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	starts.adopts = true
	return nil
}

// run starts a child with f and puts it on the list.
func (l *startList) run(f func() (pid int, err error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	pid, err := f()
	if err == nil {
		l.pids[pid]++
	}
	return err
}

// remove is for a child that was waited for.
func (l *startList) remove(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pids[pid]--; l.pids[pid] <= 0 {
		delete(l.pids, pid)
	}
}

func (l *startList) adopting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.adopts
}

// sweep kills what a shim left that died before its tree. The shim has not been waited
// for, so its process id, which is the id of its session too, is still its own.
func (l *startList) sweep(shim int) error {
	row, ok := lookup(shim)
	if !ok {
		return fmt.Errorf("look at the shim %d: there is no such process", shim)
	}
	deadline := time.Now().Add(sweepFor)
	// One look misses a process that forks and ends meanwhile, but what has ended is
	// found by the next one, as nobody else waits for it.
	for quiet := 0; quiet < 2; {
		alive, ended, err := l.pass(row)
		switch {
		case err != nil:
			return err
		case alive+ended == 0:
			quiet++
			continue
		case time.Now().After(deadline):
			return fmt.Errorf("%d processes do not end, not even by SIGKILL", alive)
		}
		quiet = 0
		l.peel(row)
	}
	return nil
}

// pass kills what is there now, waits for what has ended, and counts both.
func (l *startList) pass(shim proc) (alive, ended int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	table, err := processes()
	if err != nil {
		return 0, 0, fmt.Errorf("look for what the shim left: %w", err)
	}
	alive, ended = endAll(l.leftBy(shim, table))
	return alive, ended, nil
}

// peel kills adopted children, whose children are adopted then, and so on, until there
// are none or it has done so often. It is quicker than a look at all processes, and so
// catches those that fork and end before they are found there.
func (l *startList) peel(shim proc) {
	for range peelings {
		l.mu.Lock()
		var table []proc
		for _, pid := range listedChildren() {
			if p, ok := lookup(pid); ok {
				table = append(table, p)
			}
		}
		alive, ended := endAll(l.leftBy(shim, table))
		l.mu.Unlock()
		time.Sleep(peelPause)
		if alive+ended == 0 {
			return
		}
	}
}

// endAll kills processes, and waits for those that have ended and are children of this
// one: that does not block.
func endAll(procs []proc) (alive, ended int) {
	for _, p := range procs {
		switch {
		case !p.zombie:
			alive++
			killExactly(p)
		case p.ppid == os.Getpid():
			ended++
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG|syscall.WALL, nil)
		}
	}
	return alive, ended
}

// leftBy returns the processes that descend from a dead shim: the members of its
// session, which nothing can join from outside, and children of this process that were
// adopted. Nothing below a shim can enter the session of this process, so what is in it
// was started by other code here, or orphaned by that, and is left alone.
func (l *startList) leftBy(shim proc, table []proc) (left []proc) {
	self := os.Getpid()
	own, _ := unix.Getsid(0) // cannot fail for oneself
	children := make(map[int][]proc)
	known := map[int]bool{self: true, 1: true, shim.pid: true}
	add := func(p proc) {
		if !known[p.pid] && (p.ppid != self || l.pids[p.pid] == 0) {
			known[p.pid] = true
			left = append(left, p)
		}
	}
	for _, p := range table {
		children[p.ppid] = append(children[p.ppid], p)
		adopted := l.adopts && p.ppid == self && p.sid != own && p.start >= shim.start
		if adopted || p.sid == shim.pid {
			add(p)
		}
	}
	for i := 0; i < len(left); i++ {
		for _, p := range children[left[i].pid] {
			add(p)
		}
	}
	return left
}

// killExactly kills the process that was seen, and none that has its number since.
func killExactly(p proc) {
	if p.ppid == os.Getpid() {
		// Not waited for, so the number is its own, and that of its group if it leads one.
		if p.pgid == p.pid {
			_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		}
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
		return
	}
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EMFILE) {
		if now, ok := lookup(p.pid); ok && now.start == p.start {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		return
	}
	if err != nil {
		return // gone
	}
	defer unix.Close(fd)
	if now, ok := lookup(p.pid); ok && now.start == p.start {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // errors mean that it is gone, or not ours to kill
	}
}
