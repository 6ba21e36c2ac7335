package meter

import (
	"os"

	"golang.org/x/sys/unix"
)

// processUsage leaves out the memory, which only libraries of the system tell.
func processUsage() usage {
	u := unknownUsage()
	if p, err := unix.SysctlKinfoProc("kern.proc.pid", os.Getpid()); err == nil {
		u.started = float64(p.Proc.P_starttime.Nano()) / 1e9
	}
	var spent unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &spent); err == nil {
		u.cpuSeconds = float64(spent.Utime.Nano()+spent.Stime.Nano()) / 1e9
	}
	if dir, err := os.Open("/dev/fd"); err == nil {
		if names, err := dir.Readdirnames(0); err == nil {
			u.openFiles = float64(len(names) - 1) // without the one that reads them
		}
		_ = dir.Close() // was only read
	}
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err == nil {
		u.maxFiles = float64(l.Cur)
	}
	if err := unix.Getrlimit(unix.RLIMIT_AS, &l); err == nil {
		u.maxVirtual = float64(l.Cur)
	}
	return u
}
