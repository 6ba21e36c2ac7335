package process

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stopSignals make the shim stop its child.
func stopSignals() []os.Signal {
	return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}
}

// sigsetBytes is what the kernel takes for the size of a signal set.
const sigsetBytes = 8

// hear turns signals into events. It comes before there is a child, although it takes
// the runtime a quarter of a millisecond: a signal that arrives earlier ends a shim that
// has nothing to leave behind. To block the signals before the shim is started does not
// help, as the Go runtime unblocks them on its own start.
func hear(events chan<- event) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, append(stopSignals(), syscall.SIGCHLD)...)
	go func() {
		for sig := range signals {
			if sig == syscall.SIGCHLD {
				events <- eventChanged
			} else {
				events <- eventStop
			}
		}
	}()
}

// lastSignal is the highest signal number of Linux.
const lastSignal = 64

// cleanSignals makes the child start with no signal blocked and none ignored. It runs
// after hear, on the thread that starts the child. A signal with a handler here has
// the default action in the child; one that the parent of this process ignored, and
// the Go runtime does not handle, would stay ignored.
func cleanSignals() {
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil) // cannot fail
	for sig := uintptr(1); sig <= lastSignal; sig++ {
		var is, byDefault [8]uint64 // a struct sigaction begins with the handler; zeros mean SIG_DFL
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&is)), sigsetBytes, 0, 0)
		if errno == 0 && *(*uintptr)(unsafe.Pointer(&is)) == sigIgnore {
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&byDefault)), 0, sigsetBytes, 0, 0)
		}
	}
}

// sigIgnore is SIG_IGN.
const sigIgnore = 1
