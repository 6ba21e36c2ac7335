package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// lookEvery is how often processes are looked at: one that lives for less may be
// missed here, but not by the fake servers, which look at themselves.
const lookEvery = 250 * time.Millisecond

// watchProcesses sweeps arguments and environments of all processes below this one,
// until ctx ends. Where there is no /proc it does nothing.
func watchProcesses(ctx context.Context, s *sweeper) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	seen := map[string]bool{}
	for {
		lookAtProcesses(s, os.Getpid(), seen)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// lookAtProcesses sweeps the processes below root that were not swept as they are now.
func lookAtProcesses(s *sweeper, root int, seen map[string]bool) {
	parents := map[int]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			parents[pid] = parentOf(dir)
		}
	}
	for pid := range parents {
		if pid == root || !below(pid, root, parents) {
			continue
		}
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // it may be gone
		id := fmt.Sprint(pid, " ", string(args))
		if len(args) == 0 || seen[id] {
			continue
		}
		seen[id] = true
		program, _, _ := bytes.Cut(args, []byte{0})
		place := filepath.Base(string(program))
		s.text("arguments of processes", place, args)
		if env, err := os.ReadFile(filepath.Join(dir, "environ")); err == nil {
			s.text("environments of processes", place, env)
		}
	}
}

func below(pid, root int, parents map[int]int) bool {
	for range len(parents) {
		if pid = parents[pid]; pid == root || pid == 0 {
			break
		}
	}
	return pid == root
}

// parentOf reads /proc/PID/stat, where the name of the program may hold anything.
func parentOf(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return 0
	}
	rest := string(text[bytes.LastIndexByte(text, ')')+1:])
	if fields := strings.Fields(rest); len(fields) > 1 {
		parent, _ := strconv.Atoi(fields[1]) // 0 is nobody's
		return parent
	}
	return 0
}
