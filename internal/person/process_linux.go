package person

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxAncestors bounds how far up the tree of processes is looked.
const maxAncestors = 64

// ancestor names the agent in whose environment pid or one of its ancestors was
// started; empty when none is found. So a shell that takes the markers away from a
// command (env -u) is seen all the same. What may not be read is passed over.
func ancestor(pid int) string {
	for range maxAncestors {
		if pid <= 1 {
			return ""
		}
		if agent := Agent(environment(pid)); agent != "" {
			return agent
		}
		s, ok := readStat(pid)
		if !ok {
			return ""
		}
		pid = s.parent
	}
	return ""
}

// environment looks up variables of the environment that a process was started with.
func environment(pid int) func(string) (string, bool) {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // gone, or not readable: empty
	entries := bytes.Split(raw, []byte{0})
	return func(name string) (string, bool) {
		for _, e := range entries {
			if key, value, ok := bytes.Cut(e, []byte("=")); ok && string(key) == name {
				return string(value), true
			}
		}
		return "", false
	}
}

// stat is what /proc/PID/stat tells, to everybody, of a process.
type stat struct {
	parent   int
	terminal bool // it has a controlling terminal
}

func readStat(pid int) (stat, bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, false
	}
	return parseStat(string(raw))
}

// parseStat reads past the name, which stands in parentheses and may hold anything:
// state, parent, process group, session, terminal.
func parseStat(text string) (stat, bool) {
	at := strings.LastIndex(text, ")")
	if at < 0 {
		return stat{}, false
	}
	fields := strings.Fields(text[at+1:])
	if len(fields) < 5 {
		return stat{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return stat{parent: parent, terminal: fields[4] != "0"}, err == nil
}

// atTerminal reports whether a process has a controlling terminal and, where that can
// be read, is connected to one.
func atTerminal(pid int) bool {
	s, ok := readStat(pid)
	if !ok || !s.terminal {
		return false
	}
	in, out, errw := descriptor(pid, 0), descriptor(pid, 1), descriptor(pid, 2)
	return errw && (in || out)
}

// descriptor reports whether a descriptor of a process is a terminal. A process that
// does not let itself be read is taken at the word of its controlling terminal: usher
// itself is one.
func descriptor(pid, fd int) bool {
	to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
	if err != nil {
		return os.IsPermission(err)
	}
	return strings.HasPrefix(to, "/dev/pts/") || strings.HasPrefix(to, "/dev/tty") || to == "/dev/console"
}
