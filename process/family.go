//go:build unix

package process

import (
	"os"
	"syscall"
)

// family finds the processes of a tree where no shim collects them: descendants of
// the child, members of its group, processes that carry its marker, and all processes that
// was seen to belong before. It is used by one goroutine.
type family struct {
	pid    int
	start  uint64 // zero when unknown
	marker string // "NAME=value", or empty
	// ownGroup says that the group of that number is the child's for sure,
	// because the child was not waited for or the group was not empty since.
	ownGroup bool
	seen     map[int]uint64
}

// members returns the living processes of the family, or an error where the system
// shows no process table.
func (f *family) members() ([]proc, error) {
	table, err := processes()
	if err != nil {
		return nil, err
	}
	children := make(map[int][]proc)
	var queue []proc
	for _, p := range table {
		children[p.ppid] = append(children[p.ppid], p)
		if f.belongs(p) {
			queue = append(queue, p)
		}
	}
	var found []proc
	visited := map[int]bool{os.Getpid(): true, 1: true, 0: true}
	for len(queue) > 0 {
		p := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if visited[p.pid] {
			continue
		}
		visited[p.pid] = true
		queue = append(queue, children[p.pid]...)
		if !p.zombie {
			found = append(found, p)
		}
	}
	f.seen = make(map[int]uint64, len(found))
	for _, p := range found {
		f.seen[p.pid] = p.start
	}
	return found, nil
}

func (f *family) empty() bool {
	members, err := f.members()
	if err != nil {
		// The group is all there is to go by.
		return !f.ownGroup || syscall.Kill(-f.pid, 0) != nil
	}
	return len(members) == 0
}

func (f *family) belongs(p proc) bool {
	if p.pid == os.Getpid() || p.pid == 1 {
		return false
	}
	if p.pid == f.pid && p.start == f.start {
		return true
	}
	if start, ok := f.seen[p.pid]; ok && start == p.start {
		return true
	}
	if f.ownGroup && p.pgid == f.pid {
		return true
	}
	return f.marker != "" && !p.zombie && carries(p.pid, f.marker)
}

func (f *family) signalGroup(sig syscall.Signal) {
	// Nobody left to signal is what is wanted.
	_ = syscall.Kill(-f.pid, sig)
	if sig == syscall.SIGTERM {
		_ = syscall.Kill(-f.pid, syscall.SIGCONT) // a stopped process hears nothing else
	}
}

func (f *family) signalAll(sig syscall.Signal) {
	members, err := f.members()
	if f.ownGroup && (err != nil || sig == syscall.SIGKILL) {
		f.signalGroup(sig)
	}
	signalProcs(members, sig)
}

// signalProcs signals processes one by one; for SIGKILL first the groups they lead,
// each at once, so that their members cannot fork away from under the signal. For
// SIGTERM that would be twice, which some programs take as a call to hurry.
func signalProcs(procs []proc, sig syscall.Signal) {
	for _, p := range procs {
		// Errors mean that the process is gone, or somebody else's by now.
		if sig == syscall.SIGKILL && p.pid == p.pgid {
			_ = syscall.Kill(-p.pgid, sig)
		}
		_ = syscall.Kill(p.pid, sig)
		if sig == syscall.SIGTERM {
			_ = syscall.Kill(p.pid, syscall.SIGCONT)
		}
	}
}
