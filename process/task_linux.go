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
	t := &task{}
	err := starts.run(func() (pid int, err error) {
		t.pid, err = syscall.ForkExec(path, argv, attr)
		return t.pid, err
	})
	runtime.KeepAlive(files)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// kill ends the process, if it has not been waited for.
func (t *task) kill() { t.signal(syscall.SIGKILL) }

func (t *task) signal(sig syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.gone {
		_ = syscall.Kill(t.pid, sig) // our own child is there until it is waited for
	}
}

// ended returns when the process has ended. Its number stays its own until wait.
func (t *task) ended() error {
	for {
		err := unix.Waitid(unix.P_PID, t.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("waitid", err)
		}
	}
}

// wait returns how the process ended when it has, to one caller.
func (t *task) wait() (status syscall.WaitStatus, err error) {
	if err := t.ended(); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	for {
		_, err := syscall.Wait4(t.pid, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		starts.remove(t.pid)
		return status, os.NewSyscallError("wait4", err)
	}
}
