package process

import (
	"context"
	"os"
	"runtime"
	"syscall"
)

func launch(ctx context.Context, s *spec) (runner, error) {
	if s.shim != "" || s.guard != nil {
		return startShim(ctx, s)
	}
	return startDirect(ctx, s)
}

// needsMarker says whether a child can only be found by its environment.
func needsMarker(opt Options) bool { return opt.Shim == "" || opt.Registry != "" }

// setDeathSignal makes the child end with this process. The signal belongs to the
// thread, so the goroutine keeps the thread until the child was waited for.
func setDeathSignal(attr *syscall.SysProcAttr) (release func()) {
	attr.Pdeathsig = syscall.SIGKILL
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// startListed starts a process that a sweep leaves alone, until unlist.
func startListed(path string, argv []string, attr *os.ProcAttr) (p *os.Process, err error) {
	err = starts.run(func() (int, error) {
		if p, err = os.StartProcess(path, argv, attr); err != nil {
			return 0, err
		}
		return p.Pid, nil
	})
	return p, err
}

func unlist(pid int) { starts.remove(pid) }
