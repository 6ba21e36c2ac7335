package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// runner is a started child and whatever watches over its tree: a shim, or a
// ladder in this process.
type runner interface {
	pid() int
	// stop begins the ladder, kill goes to its end. Neither waits.
	stop()
	kill()
	// wait returns when the tree is gone, with the way the child ended. The
	// second error says that something would not go.
	wait() (exit, left error)
}

// Child is a running program and everything it started.
type Child struct {
	run    runner
	stdin  *input
	stdout *output
	stderr *Ring

	stopOnce sync.Once
	done     chan struct{}

	// set before done is closed
	exit error
	left error
}

// Start runs a child. The context bounds the start only; the child lives until
// it ends by itself or Stop is called.
//
// The error says what to do next; it matches exec.ErrNotFound when there is no
// such command.
func Start(ctx context.Context, opt Options) (*Child, error) {
	opt = opt.withDefaults()
	s, err := opt.resolve()
	if err != nil {
		return nil, err
	}
	entry, err := register(opt, s)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", opt.Command, err)
	}
	p, guard := opt.Spare.take()
	if guard == nil {
		if p, err = openPipes(); err != nil {
			entry.remove()
			return nil, fmt.Errorf("start %q: open pipes: %w", opt.Command, err)
		}
	}
	s.stdio, s.guard = p.child, guard
	run, err := launch(ctx, s)
	if err != nil {
		p.close()
		entry.remove()
		return nil, fmt.Errorf("start %q: %w", opt.Command, err)
	}
	p.closeChild()
	c := &Child{
		run:    run,
		stdin:  &input{f: p.host[0]},
		stdout: newOutput(p.host[1]),
		stderr: opt.Stderr,
		done:   make(chan struct{}),
	}
	if c.stderr == nil {
		c.stderr = NewRing(opt.StderrBytes)
	}
	go c.supervise(p.host[2], entry, opt.Stderr == nil)
	if err := entry.started(run.pid()); err != nil {
		c.Kill()
		return nil, fmt.Errorf("start %q: %w", opt.Command, err)
	}
	return c, nil
}

// Stdin is the child's standard input. Closing it twice is allowed. A Write that
// blocks because the child does not read ends when the child is stopped.
func (c *Child) Stdin() io.WriteCloser { return c.stdin }

// Ignored reports whether the child has ended and did not read all that was written to
// its standard input. It is false until Done is closed, and where the system does not
// tell.
func (c *Child) Ignored() bool {
	select {
	case <-c.done:
		return c.stdin.left > 0
	default:
		return false
	}
}

// Stdout is the child's standard output. It ends with io.EOF, after everything the
// child wrote, even when the child is long gone.
func (c *Child) Stdout() io.Reader { return c.stdout }

// Stderr is the record of the child's standard error.
func (c *Child) Stderr() *Ring { return c.stderr }

// Pid is the process id of the child itself, not of its shim.
func (c *Child) Pid() int { return c.run.pid() }

// Done is closed when the child and all it started are gone and every descriptor
// is closed.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err says how the child ended: nil for exit code 0, otherwise an *ExitError. It
// is nil until Done is closed.
func (c *Child) Err() error {
	select {
	case <-c.done:
		return c.exit
	default:
		return nil
	}
}

// Stop closes the child's input, sends SIGTERM to its group after Options.Grace
// and SIGKILL to its whole tree Options.Kill later, and waits until all is gone.
// It may be called at any time, by several callers, and after the end.
//
// It returns an error only when something would not go away. How the child ended
// is Err's matter.
func (c *Child) Stop() error {
	c.stopOnce.Do(func() {
		c.stdin.Close()
		c.run.stop()
	})
	<-c.done
	return c.left
}

// Kill sends SIGKILL to the whole tree at once and waits until all is gone. It may
// cut short a Stop that is in progress.
func (c *Child) Kill() error {
	c.stopOnce.Do(func() { c.stdin.Close() })
	c.run.kill()
	<-c.done
	return c.left
}

// supervise owns the child until its end; the one goroutine it starts ends
// before it does.
func (c *Child) supervise(stderr *os.File, entry *entry, ownRing bool) {
	var drain sync.WaitGroup
	drain.Go(func() {
		// The ring takes everything. A read error means the pipe is useless,
		// and the child is told so by a broken pipe instead of a full one.
		_, err := io.CopyBuffer(struct{ io.Writer }{c.stderr}, struct{ io.Reader }{stderr}, make([]byte, 8<<10))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			readRest(c.stderr, stderr)
		}
		stderr.Close()
	})
	c.exit, c.left = c.run.wait()
	c.stdin.Close()
	wake(stderr)
	c.stdout.finish()
	drain.Wait()
	c.stderr.Flush()
	if ownRing {
		c.stderr.Close()
	}
	entry.remove()
	close(c.done)
}
