package grants

import (
	"errors"
	"os"
	"syscall"
)

// thisSender describes this process to others.
func thisSender() sender {
	pid := os.Getpid()
	_, start := processState(pid)
	return sender{Machine: machine(), PID: pid, Start: start}
}

// probeSender says what became of a process that was about to send a request.
func probeSender(s sender) senderState {
	if s.Machine == "" || s.Machine != machine() {
		return senderUnknown
	}
	state, start := processState(s.PID)
	if state == senderUnknown && start != s.Start {
		return senderGone // another process has its number
	}
	return state
}

// processGone reports whether there is certainly no such process.
func processGone(pid int) bool {
	const invalidParameter = syscall.Errno(87) // what Windows answers
	p, err := os.FindProcess(pid)
	if err != nil {
		return errors.Is(err, invalidParameter)
	}
	defer func() { _ = p.Release() }()
	return errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
