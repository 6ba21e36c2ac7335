//go:build unix

package main

import "syscall"

// lowerPriority lets a process run only where nobody else wants to.
func lowerPriority(pid int) error { return syscall.Setpriority(syscall.PRIO_PROCESS, pid, 19) }
