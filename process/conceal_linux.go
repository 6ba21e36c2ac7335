package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxEnviron bounds what is read of this process's own environment: more than the
// system accepts.
const maxEnviron = 64 << 20

// Conceal keeps other processes of the same user, children above all, from reading this
// process: its memory, its descriptors, and the environment that it was started with.
// It is no longer dumpable, so no debugger can attach and there are no core dumps. In
// the copy of the environment that the system shows, what SafeEnv would not pass to a
// child is overwritten as well; os.Getenv still has it. An administrator can read the
// memory all the same.
//
// The main function of a program calls it after Main. Only Linux needs it.
func Conceal() error {
	blankEnvironment() // first: afterwards these files belong to root
	return notDumpable()
}

func notDumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("make this process unreadable for others: %w", err)
	}
	return nil
}

// blankEnvironment does what it can: where the system has no /proc, or does not let a
// process write its own memory that way, the environment stays, readable to
// administrators only.
func blankEnvironment() {
	start, size, ok := environmentBlock()
	if !ok {
		return
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer memory.Close()
	block := make([]byte, size)
	if n, err := memory.ReadAt(block, start); err != nil || n != len(block) {
		return
	}
	if blank(block) {
		_, _ = memory.WriteAt(block, start)
	}
}

// blank overwrites the values of a list of variables, each ended by NUL, and says
// whether it changed anything.
func blank(block []byte) (changed bool) {
	for len(block) > 0 {
		entry, rest, _ := bytes.Cut(block, []byte{0})
		name, value, found := strings.Cut(string(entry), "=")
		if found && value != "" && name != "USHER_HOME" && !inherited(name, value, false) {
			clear(entry[len(name)+1:])
			changed = true
		}
		block = rest
	}
	return changed
}

// environmentBlock returns where the system put the environment: fields 50 and 51 of
// /proc/PID/stat, of which the third follows the name.
func environmentBlock() (start, size int64, ok bool) {
	var buf [1024]byte
	line := readInto(buf[:], "/proc/self/stat")
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 49 {
		return 0, 0, false
	}
	start, err1 := strconv.ParseInt(string(fields[47]), 10, 64)
	end, err2 := strconv.ParseInt(string(fields[48]), 10, 64)
	size = end - start
	return start, size, err1 == nil && err2 == nil && start > 0 && size > 0 && size < maxEnviron
}
