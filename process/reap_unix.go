//go:build unix

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	registryUseful = true
	// reapFor bounds the attempts to end one forgotten tree.
	reapFor = 2 * time.Second
	// staleAfter is when an unreadable record is no longer somebody's unfinished
	// writing.
	staleAfter = time.Minute
)

// Reap ends the children that hosts using the registry dir left behind, with
// everything that still descends from them, and returns how many trees it ended.
// Children of hosts that still run are not touched, nor is a process that only
// has the same pid. Call it once at start; a missing directory is not an error.
func Reap(ctx context.Context, dir string) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json*"))
	if err != nil {
		return 0, fmt.Errorf("registry of children: %w", err)
	}
	ended := 0
	var errs []error
	for _, path := range files {
		if err := ctx.Err(); err != nil {
			return ended, errors.Join(append(errs, err)...)
		}
		did, err := reapFile(ctx, path)
		if did {
			ended++
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return ended, errors.Join(errs...)
}

func reapFile(ctx context.Context, path string) (bool, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // its host was quicker
	}
	if err != nil {
		return false, fmt.Errorf("registry of children: %w", err)
	}
	var r record
	if json.Unmarshal(b, &r) != nil || r.Owner <= 0 {
		return false, removeStale(path)
	}
	if r.Boot == bootID() && r.OwnerStart != 0 && ownerRuns(r) {
		return false, nil
	}
	ended := false
	if r.Boot == bootID() {
		if ended, err = reapTree(ctx, r); err != nil {
			return ended, err
		}
	}
	return ended, removeFile(path)
}

// ownerRuns says whether the host of a record lives. A host that is there and does not
// show itself (/proc mounted with hidepid, see Conceal) is taken to be the one.
func ownerRuns(r record) bool {
	start := startTime(r.Owner)
	return start == r.OwnerStart || start == 0 && !visible(r.Owner) && syscall.Kill(r.Owner, 0) == nil
}

func visible(pid int) bool {
	_, ok := lookup(pid)
	return ok
}

func removeStale(path string) error {
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()) < staleAfter {
		return nil // gone, or still being written
	}
	return removeFile(path)
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("registry of children: %w", err)
	}
	return nil
}

// reapTree sends SIGKILL at once: the input of these processes ended with their
// host, and they did not care.
func reapTree(ctx context.Context, r record) (bool, error) {
	f := &family{pid: r.Pid, start: r.Start, marker: r.Marker}
	f.ownGroup = r.Pid > 1 && r.Start != 0 && startTime(r.Pid) == r.Start
	if f.empty() {
		return false, nil
	}
	deadline := time.NewTimer(reapFor)
	defer deadline.Stop()
	tick := time.NewTicker(killPause)
	defer tick.Stop()
	for {
		f.signalAll(syscall.SIGKILL)
		if f.empty() {
			return true, nil
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return true, fmt.Errorf("process %d or one it started, left by an earlier run, does not end, not even by SIGKILL", r.Pid)
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
}

// startTime is zero for a process that does not exist.
func startTime(pid int) uint64 {
	p, ok := lookup(pid)
	if !ok || p.zombie {
		return 0
	}
	return p.start
}
