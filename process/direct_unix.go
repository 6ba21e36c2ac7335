//go:build unix

package process

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	directPoll   = 20 * time.Millisecond
	directGiveUp = 5 * time.Second
)

// direct runs a child without a shim.
type direct struct {
	family family
	ladder ladder
	events chan event

	exited chan struct{} // closed when the child was waited for
	exit   error         // set before
}

func startDirect(ctx context.Context, s *spec) (runner, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d := &direct{
		events: make(chan event, 4),
		exited: make(chan struct{}),
	}
	d.ladder = ladder{tree: directTree{d}, grace: s.grace, kill: s.kill, poll: directPoll, giveUp: directGiveUp}
	started := make(chan error)
	go d.own(s, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return d, nil
}

// own starts the child and waits for it on one thread, because on Linux the
// parent-death signal comes when the starting thread ends.
func (d *direct) own(s *spec, started chan<- error) {
	attr := &syscall.SysProcAttr{Setsid: true}
	defer setDeathSignal(attr)()
	p, err := startListed(s.path, s.argv, &os.ProcAttr{Dir: s.dir, Env: s.env, Files: s.stdio[:], Sys: attr})
	if err != nil {
		started <- explain(s.path, err)
		return
	}
	d.family = family{pid: p.Pid, marker: s.marker, ownGroup: true}
	// The child cannot be gone from the table: it was not waited for.
	if row, ok := lookup(p.Pid); ok {
		d.family.start = row.start
	}
	started <- nil
	state, err := p.Wait()
	unlist(p.Pid)
	if err != nil {
		d.exit = fmt.Errorf("wait for process %d: %w", p.Pid, err)
	} else if ws, ok := state.Sys().(syscall.WaitStatus); ok {
		d.exit = outcome(ws)
	}
	close(d.exited)
	d.events <- eventChanged
}

func (d *direct) pid() int { return d.family.pid }
func (d *direct) stop()    { d.send(eventStop) }
func (d *direct) kill()    { d.send(eventKill) }

// send drops the event when so many wait that it can only be a repetition.
func (d *direct) send(ev event) {
	select {
	case d.events <- ev:
	default:
	}
}

func (d *direct) wait() (exit, left error) {
	gone := d.ladder.run(d.events)
	select {
	case <-d.exited:
		exit = d.exit
	default:
	}
	if !gone {
		left = fmt.Errorf("process %d or one it started does not end, not even by SIGKILL", d.pid())
	}
	return exit, left
}

// directTree is the ladder's view.
type directTree struct{ d *direct }

func (t directTree) state() (ended, empty bool) {
	select {
	case <-t.d.exited:
		return true, t.d.family.empty()
	default:
		return false, false
	}
}

func (t directTree) signalGroup(sig syscall.Signal) { t.d.family.signalGroup(sig) }
func (t directTree) signalAll(sig syscall.Signal)   { t.d.family.signalAll(sig) }

// outcome turns a wait status into what Err returns.
func outcome(ws syscall.WaitStatus) error {
	switch {
	case ws.Signaled():
		name := unix.SignalName(ws.Signal())
		if name == "" {
			name = fmt.Sprintf("signal %d", int(ws.Signal()))
		}
		return &ExitError{Code: -1, Signal: name}
	case ws.ExitStatus() != 0:
		return &ExitError{Code: ws.ExitStatus()}
	}
	return nil
}
