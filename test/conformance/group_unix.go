//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endWhole makes the end of cmd's context end its children as well: the suite
// waits for a hung client instead of killing it.
func endWhole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
