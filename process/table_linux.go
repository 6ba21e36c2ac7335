package process

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// proc is one row of the process table.
type proc struct {
	pid, ppid, pgid, sid int
	start                uint64 // ticks since boot; with the pid it names a process for good
	zombie               bool
}

// processes reads the process table. Processes that end meanwhile are left out.
func processes() ([]proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return nil, err
	}
	var buf [1024]byte
	procs := make([]proc, 0, len(names))
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if p, ok := parseStat(readInto(buf[:], "/proc/"+name+"/stat")); ok {
			procs = append(procs, p)
		}
	}
	return procs, nil
}

// lookup returns the row of one process.
func lookup(pid int) (proc, bool) {
	var buf [1024]byte
	return parseStat(readInto(buf[:], "/proc/"+strconv.Itoa(pid)+"/stat"))
}

// readInto reads a small file without the cost of os.ReadFile, which is paid for
// every process of the machine.
func readInto(buf []byte, path string) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil || n <= 0 {
		return nil
	}
	return buf[:n]
}

// parseStat reads a line of /proc/PID/stat: "pid (name) state ppid pgrp …". The
// name is chosen by the process and may hold spaces, parentheses and line ends,
// so the fields are counted from the last parenthesis.
func parseStat(line []byte) (proc, bool) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return proc{}, false
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(line[:open])))
	if err != nil || pid <= 0 {
		return proc{}, false
	}
	fields := bytes.Fields(line[end+1:])
	if len(fields) < 20 {
		return proc{}, false
	}
	ppid, err1 := strconv.Atoi(string(fields[1]))
	pgid, err2 := strconv.Atoi(string(fields[2]))
	sid, err3 := strconv.Atoi(string(fields[3]))
	start, err4 := strconv.ParseUint(string(fields[19]), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		return proc{}, false
	}
	state := fields[0][0]
	return proc{pid: pid, ppid: ppid, pgid: pgid, sid: sid, start: start, zombie: state == 'Z' || state == 'X'}, true
}

// carries reports whether a process was started with entry in its environment.
// Other users' processes cannot be looked into and do not count.
func carries(pid int, entry string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if string(v) == entry {
			return true
		}
	}
	return false
}

// bootID tells one run of the machine from the next: pids and start times repeat.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}
