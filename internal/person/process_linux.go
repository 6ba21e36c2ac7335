package person

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxAncestors limits how many ancestors of a process are examined. A person has a few.
const maxAncestors = 64

// ancestor names the agent that started pid, directly or through other processes; empty
// when none is found. It recognises each process from pid up by the environment it was
// started with, which env -u cannot take from the shell above, and by its name and command
// line, which remain when a shell has replaced itself (exec env -u …). A process with more
// than maxAncestors counts as started by an agent that is out of sight.
//
// It does not find an agent that is not an ancestor any more (setsid, nohup, a job of another
// daemon), one whose program has an unknown name, and environments that this user cannot
// read.
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
		if agent := Program(s.name, commandLine(pid)); agent != "" {
			return agent
		}
		pid = s.parent
	}
	return "a program behind too many others"
}

// commandLine returns the arguments of a process, which everyone may read.
func commandLine(pid int) []string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // gone: empty
	return strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
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

// stat is what everyone may read of a process in /proc/PID/stat.
type stat struct {
	name     string // of the program, at most 15 bytes; the process may change it
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

// parseStat reads the name, which is in parentheses and may contain any character, and
// after it state, parent, process group, session and terminal.
func parseStat(text string) (stat, bool) {
	from, at := strings.Index(text, "("), strings.LastIndex(text, ")")
	if from < 0 || at < from {
		return stat{}, false
	}
	fields := strings.Fields(text[at+1:])
	if len(fields) < 5 {
		return stat{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return stat{name: text[from+1 : at], parent: parent, terminal: fields[4] != "0"}, err == nil
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
