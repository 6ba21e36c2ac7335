package process

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// afterlife is how long the read ends wait for the end of a pipe whose writers
	// are all gone. It matters only when something outside the tree holds the pipe.
	afterlife = 200 * time.Millisecond
	// longestAfterlife is for something that also writes to it.
	longestAfterlife = 25 * afterlife
)

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
	left int // bytes that were not read when it was closed
}

func (i *input) Write(p []byte) (int, error) { return i.f.Write(p) }

func (i *input) Close() error {
	i.once.Do(func() {
		i.left = unread(i.f)
		i.err = i.f.Close()
	})
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
	for {
		n, err := o.read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		// It is finish's turn, and the rest comes from memory.
	}
}

func (o *output) read(p []byte) (int, error) {
	<-o.turn
	defer func() { o.turn <- struct{}{} }()
	if !o.ended {
		return o.f.Read(p)
	}
	if len(o.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// finish is called when no writer is left.
func (o *output) finish() {
	wake(o.f) // a reader that holds the token
	<-o.turn
	defer func() { o.turn <- struct{}{} }()
	var rest bytes.Buffer
	readRest(&rest, o.f)
	o.rest, o.ended = rest.Bytes(), true
	o.f.Close()
}

// wake ends a Read that waits, with os.ErrDeadlineExceeded. Only files that cannot
// wait refuse a deadline.
func wake(f *os.File) { _ = f.SetReadDeadline(time.Unix(1, 0)) }

// readRest copies what is in a pipe, up to its end or until nothing came for a while.
// Whoever comes late to a read, on a busy machine, must not take what is there for
// nothing: that the time is over is believed when it is so again.
func readRest(to io.Writer, f *os.File) {
	part := make([]byte, 8<<10)
	begin := time.Now()
	for left, quiet := restLimit, 0; left > 0 && quiet < 2 && time.Since(begin) < longestAfterlife; quiet++ {
		_ = f.SetReadDeadline(time.Now().Add(afterlife / 2))
		n, err := f.Read(part[:min(left, len(part))])
		_, _ = to.Write(part[:n]) // to memory
		left -= n
		if n > 0 {
			quiet = -1
		} else if !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}
