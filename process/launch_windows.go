package process

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

const (
	registryUseful = false
	jobPoll        = 20 * time.Millisecond
	jobGiveUp      = 5 * time.Second
)

// Reap does nothing here: the system ends a Job Object with its host.
func Reap(context.Context, string) (int, error) { return 0, nil }

func startTime(int) uint64 { return 0 }

func bootID() string { return "" }

func needsMarker(Options) bool { return false }

// job is a child in a Job Object that dies with its last handle, which is ours.
type job struct {
	handle windows.Handle
	proc   *os.Process
	ladder ladder
	events chan event
	exited chan struct{}
	exit   error // set before exited is closed
}

func launch(ctx context.Context, s *spec) (runner, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	handle, err := newJob()
	if err != nil {
		return nil, fmt.Errorf("create job object: %w", err)
	}
	p, err := os.StartProcess(s.path, s.argv, &os.ProcAttr{
		Dir: s.dir, Env: s.env, Files: s.stdio[:],
		Sys: &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW},
	})
	if err != nil {
		windows.CloseHandle(handle)
		return nil, explain(s.path, err)
	}
	if err := assign(handle, p.Pid); err != nil {
		_ = p.Kill()
		_, _ = p.Wait()
		windows.CloseHandle(handle)
		return nil, fmt.Errorf("assign process %d to its job object: %w", p.Pid, err)
	}
	j := &job{handle: handle, proc: p, events: make(chan event, 4), exited: make(chan struct{})}
	j.ladder = ladder{tree: j, grace: s.grace, kill: s.kill, poll: jobPoll, giveUp: jobGiveUp}
	go j.own()
	return j, nil
}

func newJob() (windows.Handle, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		windows.CloseHandle(handle)
		return 0, err
	}
	return handle, nil
}

func assign(handle windows.Handle, pid int) error {
	p, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(p)
	return windows.AssignProcessToJobObject(handle, p)
}

func (j *job) own() {
	state, err := j.proc.Wait()
	switch {
	case err != nil:
		j.exit = fmt.Errorf("wait for process %d: %w", j.proc.Pid, err)
	case state.ExitCode() != 0:
		j.exit = &ExitError{Code: state.ExitCode()}
	}
	close(j.exited)
	j.events <- eventChanged
}

func (j *job) pid() int { return j.proc.Pid }
func (j *job) stop()    { j.send(eventStop) }
func (j *job) kill()    { j.send(eventKill) }

func (j *job) send(ev event) {
	select {
	case j.events <- ev:
	default: // so many wait that it can only be a repetition
	}
}

func (j *job) wait() (exit, left error) {
	gone := j.ladder.run(j.events)
	windows.CloseHandle(j.handle)
	select {
	case <-j.exited:
		exit = j.exit
	default:
	}
	if !gone {
		left = fmt.Errorf("process %d or one it started does not end", j.proc.Pid)
	}
	return exit, left
}

func (j *job) state() (ended, empty bool) {
	select {
	case <-j.exited:
		return true, j.active() == 0
	default:
		return false, false
	}
}

// active returns how many processes of the job run, none when it cannot be asked.
func (j *job) active() uint32 {
	// JOBOBJECT_BASIC_ACCOUNTING_INFORMATION
	var info struct {
		TotalUserTime, TotalKernelTime, PeriodUserTime, PeriodKernelTime int64
		TotalPageFaultCount, TotalProcesses, ActiveProcesses, Terminated uint32
	}
	err := windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	if err != nil {
		return 0
	}
	return info.ActiveProcesses
}

// signalGroup does nothing: there is no SIGTERM for programs without a console.
func (j *job) signalGroup(syscall.Signal) {}

func (j *job) signalAll(sig syscall.Signal) {
	if sig == syscall.SIGKILL {
		_ = windows.TerminateJobObject(j.handle, 1) // already gone is as good
	}
}
