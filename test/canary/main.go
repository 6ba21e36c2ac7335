package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/usher-mcp/usher/internal/fake"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: canary COMMAND…, such as: canary go test -json ./...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, fake.Secrets, os.Stdout, os.Stderr, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "canary:", err)
	}
	os.Exit(code)
}

// run runs the command under watch and returns the exit code.
func run(ctx context.Context, find func([]byte) [][]byte, out, errw io.Writer, command []string) (code int, err error) {
	book, err := os.MkdirTemp("", exempt)
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(book) }() // it is only temporary
	s := newSweeper(find)
	watch, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	dir, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return 1, err
	}
	files, err := watchFiles(watch, s, dir)
	if err != nil {
		fmt.Fprintln(errw, "canary:", err, "- output and processes are swept all the same")
		files = func() {}
	}
	processes := make(chan struct{})
	go func() {
		defer close(processes)
		watchProcesses(watch, s)
	}()
	code, err = runCommand(ctx, out, errw, command, book, s)
	end()
	files()
	<-processes
	if err == nil {
		err = s.verifiers(book)
	}
	if s.tell(errw) && code == 0 || err != nil {
		code = 1
	}
	return code, err
}

func runCommand(ctx context.Context, show, errw io.Writer, command []string, book string, s *sweeper) (int, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // tests end their children
	cmd.Env = append(os.Environ(), fake.VerifierBook+"="+book)
	cmd.Stderr = errw
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	r := &reporter{out: show, held: map[string]map[string]*strings.Builder{}}
	readErr := r.read(out, s)
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), readErr
	}
	return 0, errors.Join(err, readErr)
}
