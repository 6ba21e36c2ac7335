package vault

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is the time since the machine was started. It goes on while it sleeps.
func bootTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
