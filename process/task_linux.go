package process

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// task is a process that was started here. An os.Process would be the same, but the
// first one that a program starts starts another before it, to see what the kernel can
// do, and a command with one child waits for that.
type task struct {
	pid int

	mu   sync.Mutex // guards gone
	gone bool       // waited for: the number may be somebody else's by now
}

func startTask(path string, argv, env []string, dir string, files ...*os.File) (*task, error) {
	attr := &syscall.ProcAttr{Dir: dir, Env: env, Sys: &syscall.SysProcAttr{Setsid: true}}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	pid, err := syscall.ForkExec(path, argv, attr)
	runtime.KeepAlive(files)
	if err != nil {
		return nil, err
	}
	return &task{pid: pid}, nil
}

// kill ends the process, if it has not been waited for.
func (t *task) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.gone {
		_ = syscall.Kill(t.pid, syscall.SIGKILL) // our own child is there until it is waited for
	}
}

// wait returns how the process ended when it has, to one caller.
func (t *task) wait() (status syscall.WaitStatus, err error) {
	for {
		// Only looking: while kill may come, the number has to stay.
		err := unix.Waitid(unix.P_PID, t.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, os.NewSyscallError("waitid", err)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.gone = true
		for {
			if _, err := syscall.Wait4(t.pid, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
				return status, os.NewSyscallError("wait4", err)
			}
		}
	}
}
