package torture

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// usage is the most memory that a process had so far, in bytes, and how many descriptors it has open.
func usage(pid int) (memory, files int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // of one that has gone there is none
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			memory = kb << 10
		}
	}
	all, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return memory, len(all)
}
