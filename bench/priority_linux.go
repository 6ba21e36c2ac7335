package main

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// idlePolicy is Linux's SCHED_IDLE: run only where nobody else wants to.
const idlePolicy = 5

// becomePolite makes this program start again with args, as one that runs only
// where nobody else wants to. The policy belongs to a thread and is inherited by
// what that thread executes, so it is set before there are others.
func becomePolite(args []string) error {
	runtime.LockOSThread()
	var none struct{ priority int32 }
	if _, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, idlePolicy, uintptr(unsafe.Pointer(&none))); e != 0 {
		return e
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(exe, append([]string{exe}, args...), os.Environ())
}
