package grants

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// machine tells the processes whose numbers mean the same: of one start of one machine,
// in one namespace of process numbers.
func machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + namespace
}

// processState reads whether a process is stopped or gone, and when it was started.
func processState(pid int) (senderState, uint64) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		if processGone(pid) {
			return senderGone, 0
		}
		return senderUnknown, 0
	}
	// The name of the program is in parentheses and may hold anything.
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 20 {
		return senderUnknown, 0
	}
	start, _ := strconv.ParseUint(string(fields[19]), 10, 64) // 0 is nobody's
	switch fields[0][0] {
	case 'T', 't':
		return senderStopped, start
	case 'Z', 'X':
		return senderGone, start
	}
	return senderUnknown, start
}
