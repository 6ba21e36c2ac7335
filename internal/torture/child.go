package torture

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// ChildCommand is the hidden command under which the program runs [Child].
const ChildCommand = "torture-child"

// Child is a process that a run starts in order to kill it or to race it. It returns
// the exit code.
//
//	renew DIR URL COUNT FIRST   refresh the logins in turn, forever, and report each
//	call DIR URL                make a call for each line of input
func Child(ctx context.Context, args []string, in io.Reader, out io.Writer) int {
	if len(args) < 3 {
		fmt.Fprintln(out, "failed: too few arguments")
		return 2
	}
	store, err := openStore(ctx, args[1])
	if err != nil {
		fmt.Fprintln(out, "failed:", err)
		return 1
	}
	defer func() { _ = store.Close() }() // what counts was said
	c := newCaller(store, args[2])
	defer c.close()
	switch {
	case args[0] == "call":
		fmt.Fprintln(out, "ready")
		for lines := bufio.NewScanner(in); lines.Scan(); {
			said := "ok"
			if err := c.call(ctx, account(0)); err != nil {
				said = strings.ReplaceAll(err.Error(), "\n", " ")
			}
			fmt.Fprintln(out, said)
		}
	case args[0] == "renew" && len(args) == 5:
		count, _ := strconv.Atoi(args[3])
		first, _ := strconv.Atoi(args[4])
		err = c.renewAll(ctx, out, count, first)
	}
	if err != nil {
		fmt.Fprintln(out, "failed:", err)
		return 1
	}
	return 0
}

// renewAll makes calls with one account after the other. The resource takes each
// token once, so each call renews the login, and the line says that it was used.
func (c *caller) renewAll(ctx context.Context, out io.Writer, count, first int) error {
	for i := first; ; i++ {
		a := account(i % count)
		if err := c.call(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		s, err := c.e.Status(ctx, a)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "used", i%count, s.Generation)
	}
}

// process is a child at work.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// start runs the program with arguments, its input and output connected.
func (t *trial) start(env []string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(t.ctx, t.self, args...)}
	p.cmd.Env = append(os.Environ(), env...)
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(stdout)
	return p, p.cmd.Start()
}

// ask sends a line, unless it is empty, and returns the answer.
func (p *process) ask(line string) string {
	if line != "" {
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			return err.Error()
		}
	}
	if !p.out.Scan() {
		return "the process has gone"
	}
	return p.out.Text()
}
