package login

import (
	"context"

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/cli/cmdutil"
)

// loginAnswers are the lines of standard input with which a program drives logins.
type loginAnswers struct {
	input *bulk.Input // nil without --json
	ready chan struct{}
	until context.Context // ends when no answer can come any more
	stop  context.CancelFunc
}

// readAnswers reads answers from standard input with --json. With --paste, where they
// come in no other way, nothing is waited for after its end.
func readAnswers(ctx context.Context, f *cmdutil.Factory, d *bulk.Driver, show *board, o *loginOptions) *loginAnswers {
	l := &loginAnswers{ready: make(chan struct{})}
	l.until, l.stop = context.WithCancel(ctx)
	if !o.json || f.IO.In == nil {
		return l
	}
	l.input = bulk.NewInput(d, show.enc)
	l.input.Ready = l.ready
	ended := make(chan struct{})
	go func() { // may outlive the command: a read of standard input cannot be cancelled
		defer close(ended)
		_ = l.input.Read(ctx, f.IO.In) // what was not read is not answered
	}()
	if o.paste {
		go func() {
			select {
			case <-ended:
				l.stop()
			case <-l.until.Done():
			}
		}()
	}
	return l
}

// prepared says that every login has been begun that will be.
func (l *loginAnswers) prepared() { close(l.ready) }

// close waits until every line that was taken in has its reply.
func (l *loginAnswers) close() {
	if l.input != nil {
		l.input.Close()
	}
	l.stop()
}
