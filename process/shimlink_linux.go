package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// startTimeout is for a program that is named as shim and does not call
	// Main; the real ones answer in milliseconds.
	startTimeout = 20 * time.Second
	// dismissal is how long a shim may take to go when its start failed.
	dismissal = time.Second
	// shimGiveUp is how much longer than its ladder a shim may take.
	shimGiveUp = 5 * time.Second
)

// shimmed is the host's side of a shim.
type shimmed struct {
	shim     *task
	link     *os.File
	child    int
	patience time.Duration

	mu       sync.Mutex // guards the fields below
	overdue  *time.Timer
	finished bool
	gaveUp   bool
}

// guard is a shim that waits to be told what to run.
type guard struct {
	shim *task
	link *os.File
}

// openGuard starts a shim; label is what a process list shows of the child.
func openGuard(shim, label string, stdio [3]*os.File) (*guard, error) {
	link, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("open the link to the shim: %w", err)
	}
	// The shim's environment is its own; the child's travels over the link. One
	// processor keeps it small, and so does no collector: it allocates next to nothing
	// once it runs, and a collection touches all the memory that it could do without.
	// The limit is for a child that makes thousands of processes to be counted.
	env := []string{shimVariable + "=" + strconv.Itoa(shimLink), "GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=16MiB"}
	p, err := startTask(shim, []string{shimName, label}, env, "/", stdio[0], stdio[1], stdio[2], theirs)
	theirs.Close()
	if err != nil {
		link.Close()
		return nil, fmt.Errorf("start the shim %s: %w", shim, err)
	}
	return &guard{shim: p, link: link}, nil
}

func startShim(ctx context.Context, s *spec) (runner, error) {
	g := s.guard
	if g == nil {
		var err error
		if g, err = openGuard(s.shim, filepath.Base(s.path), s.stdio); err != nil {
			return nil, err
		}
	}
	child, err := instruct(ctx, g.link, s)
	if err != nil {
		g.dismiss()
		return nil, err
	}
	return &shimmed{shim: g.shim, link: g.link, child: child, patience: s.grace + s.kill + shimGiveUp}, nil
}

// dismiss ends a shim that did not start, and the child it may have started since.
func (g *guard) dismiss() {
	_ = g.link.SetDeadline(time.Now().Add(dismissal))
	_ = writeFrame(g.link, frameKill, "") // errors mean it is gone
	_, _ = io.Copy(io.Discard, g.link)    // until it is
	g.shim.kill()
	if g.shim.ended() == nil {
		_ = starts.sweep(g.shim.pid) // the start has failed already, which is what is told
	}
	_, _ = g.shim.wait()
	g.link.Close()
}

func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	// Ours takes deadlines; the shim has a thread to spare and needs no poller.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "link"), os.NewFile(uintptr(fds[1]), "link"), nil
}

// instruct hands the shim its work and returns the pid of the child.
func instruct(ctx context.Context, link *os.File, s *spec) (int, error) {
	// Every file made from a non-blocking socket takes a deadline.
	_ = link.SetDeadline(time.Now().Add(startTimeout))
	release := context.AfterFunc(ctx, func() { _ = link.SetDeadline(time.Unix(1, 0)) })
	child, err := exchange(link, s)
	if !release() {
		return 0, context.Cause(ctx)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, fmt.Errorf("%s does not answer as a shim; call process.Main first in its main, or leave Options.Shim empty", s.shim)
	}
	if err != nil {
		return 0, err
	}
	return child, link.SetDeadline(time.Time{})
}

// exchange does not wait until the shim is there: what is written lies ready for it.
func exchange(link *os.File, s *spec) (int, error) {
	if err := writeFrame(link, frameSpec, s.encode()); err != nil {
		return 0, fmt.Errorf("instruct the shim: %w", err)
	}
	kind, body, err := readFrame(link)
	if err != nil {
		return 0, fmt.Errorf("hear from the shim: %w", err)
	}
	n, err := strconv.Atoi(body)
	switch {
	case err == nil && kind == framePid:
		return n, nil
	case err == nil && kind == frameFailed:
		return 0, explain(s.path, syscall.Errno(n))
	}
	return 0, errFrame
}

func (r *shimmed) pid() int { return r.child }
func (r *shimmed) stop()    { r.ask(frameStop) }
func (r *shimmed) kill()    { r.ask(frameKill) }

// ask cannot block: the frames are tiny and a buffer lies between. An error means
// that the shim is gone, which wait notices.
func (r *shimmed) ask(kind byte) {
	r.mu.Lock()
	if r.overdue == nil && !r.finished {
		r.overdue = time.AfterFunc(r.patience, r.giveUp)
	}
	r.mu.Unlock()
	_ = writeFrame(r.link, kind, "")
}

// giveUp is for a shim that was stopped, or waits for a process that even SIGKILL
// does not end. The child dies with the shim.
func (r *shimmed) giveUp() {
	r.mu.Lock()
	r.gaveUp = !r.finished
	r.mu.Unlock()
	r.shim.kill()
}

func (r *shimmed) wait() (exit, left error) {
	status, err := r.result()
	if err == nil {
		// All that it guarded is gone and it leaves by itself. Nobody has to wait
		// until the system has taken it apart.
		go func() { _, _ = r.shim.wait() }()
	} else {
		left = r.lost(err)
	}
	r.link.Close()

	r.mu.Lock()
	r.finished = true
	if r.overdue != nil {
		r.overdue.Stop()
	}
	gaveUp := r.gaveUp
	r.mu.Unlock()

	if err == nil {
		return outcome(status), nil
	}
	exit = &ExitError{Code: -1, Signal: unix.SignalName(syscall.SIGKILL)}
	if gaveUp {
		left = fmt.Errorf("process %d or one it started did not end in time; its shim was killed", r.child)
	}
	return exit, left
}

// lost is for a shim that ended without a word: it was killed, or crashed. It ends what
// the shim left, and returns an error unless that is all gone.
func (r *shimmed) lost(cause error) error {
	// It closes the link only by ending, or by closing it and hanging: no one else has it.
	r.shim.kill()
	if err := r.shim.ended(); err != nil {
		return fmt.Errorf("the shim of process %d is lost: %w", r.child, errors.Join(cause, err))
	}
	err := starts.sweep(r.shim.pid)
	_, waitErr := r.shim.wait()
	if err = errors.Join(err, waitErr); err != nil {
		return fmt.Errorf("the shim of process %d was killed, and not all that it guarded has ended: %w", r.child, err)
	}
	if !starts.adopting() {
		return fmt.Errorf("the shim of process %d was killed; what has left its session may still run: %w", r.child, cause)
	}
	return nil
}

// result reads until the shim says how it went, or is gone.
func (r *shimmed) result() (syscall.WaitStatus, error) {
	for {
		kind, body, err := readFrame(r.link)
		if err != nil {
			return 0, err
		}
		if kind != frameOutcome {
			continue
		}
		n, err := strconv.Atoi(body)
		return syscall.WaitStatus(n), err
	}
}
