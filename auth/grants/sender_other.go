//go:build !linux

package grants

import "os"

// machine tells the processes whose numbers mean the same.
func machine() string {
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	return host
}

// processState reads whether a process is gone. That one is stopped is not seen here.
func processState(pid int) (senderState, uint64) {
	if processGone(pid) {
		return senderGone, 0
	}
	return senderUnknown, 0
}
