package torture

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// marked returns the living processes that carry a mark.
func marked(mark string) ([]int, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	want := []byte("\x00" + markName + "=" + mark + "\x00")
	var pids []int
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil || !bytes.Contains(append([]byte{0}, env...), want) {
			continue // somebody else's, or gone
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// describe says what a process is and what it does.
func describe(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may be gone by now
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return fmt.Sprintf("%q, %.60q", bytes.ReplaceAll(line, []byte{0}, []byte{' '}), stat)
}
