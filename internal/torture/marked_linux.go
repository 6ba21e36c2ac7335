package torture

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// census knows the living processes of all cycles. One look at the environments of
// all processes serves every cycle that waits: it is dear, and with a look for each of
// them the looking would be most of what the machine does.
type census struct {
	mu     sync.Mutex // guards at, living
	at     time.Time  // when the last look began
	living map[string][]int
}

// marked returns the living processes that carry a mark, as they were at since or later.
func (c *census) marked(mark string, since time.Time) ([]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.Before(since) || time.Since(c.at) > censusEvery {
		at := time.Now()
		living, err := countMarked()
		if err != nil {
			return nil, err
		}
		c.at, c.living = at, living
	}
	return c.living[mark], nil
}

// countMarked returns all living processes that carry a mark, by mark.
func countMarked() (map[string][]int, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	name := []byte("\x00" + markName + "=")
	living := map[string][]int{}
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil {
			continue // somebody else's, or gone
		}
		_, rest, found := bytes.Cut(append([]byte{0}, env...), name)
		mark, _, whole := bytes.Cut(rest, []byte{0})
		pid, err := strconv.Atoi(filepath.Base(dir))
		if found && whole && err == nil {
			living[string(mark)] = append(living[string(mark)], pid)
		}
	}
	return living, nil
}

// describe says what a process is and what it does.
func describe(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may be gone by now
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return fmt.Sprintf("%q, %.60q", bytes.ReplaceAll(line, []byte{0}, []byte{' '}), stat)
}
