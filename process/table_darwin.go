package process

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// proc is one row of the process table.
type proc struct {
	pid, ppid, pgid int
	start           uint64 // microseconds; with the pid it names a process for good
	zombie          bool
}

const stateZombie = 5 // SZOMB of sys/proc.h

func processes() ([]proc, error) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	procs := make([]proc, 0, len(infos))
	for i := range infos {
		procs = append(procs, row(&infos[i]))
	}
	return procs, nil
}

func lookup(pid int) (proc, bool) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return proc{}, false
	}
	return row(info), true
}

func row(k *unix.KinfoProc) proc {
	t := k.Proc.P_starttime
	return proc{
		pid:    int(k.Proc.P_pid),
		ppid:   int(k.Eproc.Ppid),
		pgid:   int(k.Eproc.Pgid),
		start:  uint64(t.Sec)*1e6 + uint64(t.Usec),
		zombie: k.Proc.P_stat == stateZombie,
	}
}

// carries is false: the system does not show environments reliably.
func carries(int, string) bool { return false }

func bootID() string {
	t, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return ""
	}
	return strconv.FormatInt(int64(t.Sec), 10)
}
