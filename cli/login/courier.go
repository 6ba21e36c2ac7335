package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/auth/forward"
	"github.com/usher-mcp/usher/auth/loopback"
	"github.com/usher-mcp/usher/cli/cmdutil"
)

// courierGoodbye is how long the far side has to end after the line was closed.
const courierGoodbye = 3 * time.Second

// CourierWords makes each word after --courier a value of that flag: the command of
// the far machine has flags of its own, which are none of ours. A -- ends it.
func CourierWords(root *cobra.Command, args []string) []string {
	at := slices.Index(args, "--courier")
	if dash := slices.Index(args, "--"); at < 0 || dash >= 0 && dash < at {
		return args
	}
	if c, _, err := root.Find(args[:at]); err != nil || c.Name() != "login" {
		return args
	}
	out := slices.Clone(args[:at])
	for i, word := range args[at+1:] {
		if word == "--" {
			return append(out, args[at+1+i:]...)
		}
		out = append(out, "--courier="+word)
	}
	if len(out) == at {
		return args // the flag says what it lacks
	}
	return out
}

// courierNear logs another machine in with the browser of this one.
func courierNear(ctx context.Context, f *cmdutil.Factory, o *loginOptions, mode bulk.Mode) error {
	const example = "usher login --missing --courier ssh HOST"
	switch {
	case mode == "" && len(o.accounts) == 0:
		return cmdutil.Usagef(example, "--courier needs --all, --missing, --expired, or servers after a --")
	case o.device || o.paste:
		return cmdutil.Usagef(example, "--courier brings answers over by itself: leave --device and --paste out")
	}
	if mode == "" {
		mode = bulk.ModeAll // a server that is named is logged in
	}
	screen(f, o.json)
	wait, stop := context.WithTimeout(ctx, o.wait)
	defer stop()
	line, err := dial(wait, f, o)
	if err != nil {
		return err
	}
	defer line.close()
	near := forward.NewLocal(line.out, line.in, func(text string) { f.Note("%s", text) })
	hello, err := near.Hello(cmdutil.Version().Number)
	if err != nil {
		return line.explain(wait, err)
	}
	callbacks := loopback.NewListener(func(ctx context.Context, cb auth.Callback) loopback.Outcome {
		return auth.CallbackOutcome(near.Answer(ctx, cb))
	})
	defer func() { _ = callbacks.Close() }() // the pages have been shown
	redirects, err := listenAt(f, callbacks, hello.Redirects)
	if err != nil {
		return err
	}
	order := forward.Order{Usher: cmdutil.Version().Number, Mode: mode, Accounts: o.accounts, Scopes: o.scopes, Redirects: redirects}
	if err := near.Order(order); err != nil {
		return line.explain(wait, err)
	}
	return carry(wait, f, stop, o, line, near, hello.Host)
}

// listenAt listens where the far side would like answers to be taken, as far as that
// is possible here.
func listenAt(f *cmdutil.Factory, c *loopback.Listener, wanted []string) ([]string, error) {
	first := ""
	if len(wanted) > 0 {
		first, wanted = wanted[0], wanted[1:]
	}
	main, err := c.Listen(first)
	if err != nil {
		return nil, fmt.Errorf("listen here for the answers of login pages: %w", err)
	}
	out := []string{main}
	for _, address := range wanted {
		if err := c.ListenOn(address); err != nil {
			f.Note("%s cannot be received here (%v): paste the URL you are redirected to", address, err)
			continue
		}
		out = append(out, address)
	}
	return out, nil
}

// carry shows the logins and brings the answers over until all have ended.
func carry(ctx context.Context, f *cmdutil.Factory, stop func(), o *loginOptions, line *courierLine, near *forward.Local, where string) error {
	show := newBoard(f, near, o.json, stop)
	defer show.close()
	page := &consents{f: f, d: near, o: o}
	defer page.close()
	begun := map[string]bool{}
	err := near.Run(func(r bulk.Row) {
		if out, ok := outcomeOf(r); ok && !begun[r.Server] {
			begun[r.Server] = true
			show.outcome(out)
		}
		if r.Login != nil {
			page.open(ctx)
		}
	}, func() { page.list(ctx) })
	page.close()
	show.close()
	if err != nil {
		err = line.explain(ctx, err)
	}
	line.close()
	broke := err != nil && ctx.Err() == nil
	if len(near.Rows()) == 0 {
		if err == nil {
			f.Note("no server on %s can be logged in to; there: usher add NAME URL", where)
		}
		return err
	}
	summary := loginSummary(f, near, o, loginNext{on: "on " + where + ": ", again: o.courierCommand()})
	if broke {
		return err
	}
	return summary
}

// outcomeOf is what the first telling row of an account means to a program that reads
// --json; false for one that only says that it is being worked on.
func outcomeOf(r bulk.Row) (bulk.Outcome, bool) {
	out := bulk.Outcome{Server: r.Server, ServerURL: r.ServerURL}
	switch {
	case r.Login != nil:
		out.Status, out.Login = bulk.StatusPending, *r.Login
	case r.Phase == bulk.PhaseSkipped:
		out.Status, out.Reason = bulk.StatusSkipped, r.Detail
	case r.Phase == bulk.PhaseFailed:
		out.Status, out.Err = bulk.StatusFailed, errors.New(r.Detail)
	default:
		return out, false
	}
	return out, true
}

// courierCommand is the command that was typed, for the next time.
func (o *loginOptions) courierCommand() string {
	words := []string{"usher", "login"}
	for flag, on := range map[string]bool{"--all": o.all, "--missing": o.missing, "--expired": o.expired} {
		if on {
			words = append(words, flag)
		}
	}
	if o.farUsher != "usher" {
		words = append(words, "--far-usher", cmdutil.ShellWord(o.farUsher))
	}
	words = append(words, "--courier")
	for _, w := range o.courier {
		words = append(words, cmdutil.ShellWord(w))
	}
	if len(o.accounts) > 0 {
		words = append(append(words, "--"), o.accounts...)
	}
	return strings.Join(words, " ")
}

// courierLine is the command that reaches the far machine.
type courierLine struct {
	words  []string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	errs   *lineNotes
	closed bool
	err    error // how it ended, once closed
}

// dial starts the command. It stays in our process group, so that it can ask for a
// password on the terminal, and so that Ctrl-C reaches it too.
func dial(ctx context.Context, f *cmdutil.Factory, o *loginOptions) (*courierLine, error) {
	words := append(slices.Clone(o.courier), strings.Fields(o.farUsher)...)
	words = append(words, "login", "--courier-far")
	l := &courierLine{words: o.courier, cmd: exec.CommandContext(ctx, words[0], words[1:]...), errs: &lineNotes{say: func(s string) { f.Note("%s", s) }}}
	l.cmd.Stderr = l.errs
	var err error
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if l.out, err = l.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	// The far side ends when its input does, after what it is in the middle of.
	l.cmd.Cancel = l.in.Close
	l.cmd.WaitDelay = courierGoodbye
	if err := l.cmd.Start(); err != nil {
		return nil, cmdutil.WithHint(fmt.Errorf("--courier: run %s: %w", words[0], err), "the command after --courier must reach the other machine, as in: usher login --missing --courier ssh HOST")
	}
	// A grandchild may hold the pipe longer than the command lives.
	context.AfterFunc(ctx, func() { time.AfterFunc(2*courierGoodbye, func() { _ = l.out.Close() }) })
	return l, nil
}

// close ends the line and waits for the command.
func (l *courierLine) close() {
	if l.closed {
		return
	}
	l.closed = true
	_ = l.in.Close() // that is how the far side knows
	timer := time.AfterFunc(courierGoodbye, func() { _ = l.cmd.Process.Kill() })
	defer timer.Stop()
	l.err = l.cmd.Wait()
	l.errs.flush()
}

// explain says why a line broke.
func (l *courierLine) explain(ctx context.Context, err error) error {
	var fault *forward.Fault
	broke := errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed)
	if errors.As(err, &fault) || !broke {
		return fmt.Errorf("--courier %s: %w", strings.Join(l.words, " "), err)
	}
	l.close()
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return cmdutil.WithHint(fmt.Errorf("--courier %s: usher there did not answer in time", strings.Join(l.words, " ")), "wait for longer: --wait 10m")
	case err != nil:
		return err
	}
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](l.err); ok {
		code = exit.ExitCode()
	}
	why, next := "the command ended before usher there was done; what was consented stays, the rest waits there", "the same command goes on with it"
	switch code {
	case 126, 127:
		why, next = "usher was not found there", "install usher on that machine, or say what it is called there: --far-usher PATH"
	case cmdutil.ExitUsage:
		why, next = "the usher there does not know couriers", "update it there: here it is "+cmdutil.Version().Number
	case 255:
		why, next = "that machine was not reached", "see what this says: "+strings.Join(l.words, " ")+" true"
	}
	return cmdutil.WithHint(fmt.Errorf("--courier %s: %s (exit status %d)", strings.Join(l.words, " "), why, code), "%s", next)
}

// lineNotes shows what the command says on its standard error, line by line, so that
// what comes from another machine cannot act on this terminal.
type lineNotes struct {
	say  func(string)
	rest []byte
}

func (n *lineNotes) Write(p []byte) (int, error) {
	n.rest = append(n.rest, p...)
	for {
		line, rest, more := bytes.Cut(n.rest, []byte("\n"))
		if !more && len(n.rest) < cmdutil.MaxPaste {
			return len(p), nil
		}
		n.rest = rest
		n.say(strings.TrimRight(string(line), "\r"))
	}
}

func (n *lineNotes) flush() {
	if len(n.rest) > 0 {
		n.say(string(n.rest))
	}
	n.rest = nil
}
