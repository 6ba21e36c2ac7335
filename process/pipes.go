package process

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// afterlife is how long the read ends wait for the end of a pipe whose writers
// are all gone. It matters only when something outside the tree holds the pipe.
const afterlife = 200 * time.Millisecond

// restLimit bounds what is kept of standard output after the child is gone. No
// pipe holds more than this by default.
const restLimit = 1 << 20

// pipes are the three pairs between the host and a child.
type pipes struct {
	child [3]*os.File // what the child gets as 0, 1, 2
	host  [3]*os.File // the other ends
}

func openPipes() (*pipes, error) {
	p := new(pipes)
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			p.close()
			return nil, err
		}
		if i == 0 {
			p.child[i], p.host[i] = r, w
		} else {
			p.child[i], p.host[i] = w, r
		}
	}
	return p, nil
}

// closeChild closes the child's ends here: end of file arrives only when the
// child holds the last copy.
func (p *pipes) closeChild() {
	for i, f := range p.child {
		if f != nil {
			f.Close()
			p.child[i] = nil
		}
	}
}

func (p *pipes) close() {
	p.closeChild()
	for _, f := range p.host {
		if f != nil {
			f.Close()
		}
	}
}

// input is the child's standard input. Close may be called any number of times,
// also while a Write is blocked, which then fails with os.ErrClosed.
type input struct {
	f    *os.File
	once sync.Once
	err  error
}

func (i *input) Write(p []byte) (int, error) { return i.f.Write(p) }

func (i *input) Close() error {
	i.once.Do(func() { i.err = i.f.Close() })
	return i.err
}

// output is the child's standard output. When the child is gone the descriptor is
// closed at once, and what was still in the pipe is served from memory: the last
// answer of a child is not lost, however late it is read.
type output struct {
	f    *os.File
	turn chan struct{} // holds one token; its holder reads f or rest

	// with the token only
	rest  []byte
	ended bool
}

func newOutput(f *os.File) *output {
	o := &output{f: f, turn: make(chan struct{}, 1)}
	o.turn <- struct{}{}
	return o
}

func (o *output) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	<-o.turn
	defer func() { o.turn <- struct{}{} }()
	if !o.ended {
		n, err := o.f.Read(p)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = io.EOF
		}
		return n, err
	}
	if len(o.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// finish is called when no writer is left. The deadline also wakes a reader that
// holds the token, so waiting for the token is bounded.
func (o *output) finish() {
	// Only files that cannot wait refuse a deadline, and those do not block.
	_ = o.f.SetReadDeadline(time.Now().Add(afterlife))
	<-o.turn
	defer func() { o.turn <- struct{}{} }()
	// An error here means the pipe is still held elsewhere; what came is kept.
	o.rest, _ = io.ReadAll(io.LimitReader(o.f, restLimit))
	o.ended = true
	o.f.Close()
}
