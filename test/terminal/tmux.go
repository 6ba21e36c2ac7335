package terminal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/test/need"
)

// patience is how long a test waits for something to appear.
const patience = time.Minute

// settings of the private tmux: one pane without decoration, whose size only the test
// changes, and which stays when its command has ended.
const settings = `set -g default-terminal tmux-256color
set -g status off
set -g remain-on-exit on
set -g remain-on-exit-format ""
set -g escape-time 0
set -g history-limit 5000
`

// Screen is a terminal in which one command runs.
type Screen struct {
	t   testing.TB
	in  io.WriteCloser
	ask sync.Mutex // one command at a time

	mu      sync.Mutex // guards what follows
	news    chan struct{}
	ended   bool
	answers chan answer
}

// answer is what tmux said to a command.
type answer struct {
	text string
	ok   bool
}

// Open runs a shell command in a terminal of this size, with this environment and
// nothing else, until the test ends.
func Open(t testing.TB, columns, rows int, env []string, command string) *Screen {
	t.Helper()
	tmux := need.Tmux(t)
	dir, err := os.MkdirTemp("", "t") // short: a socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	conf := filepath.Join(dir, "conf")
	if err := os.WriteFile(conf, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	size := []string{"-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows)}
	args := append([]string{"-S", filepath.Join(dir, "s"), "-f", conf, "-C", "new-session"}, append(size, command)...)
	cmd := exec.Command(tmux, args...)
	cmd.Env = append([]string{"LANG=C.UTF-8", "PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh"}, env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &Screen{t: t, in: in, news: make(chan struct{}), answers: make(chan answer, 16)}
	var reader sync.WaitGroup
	reader.Go(func() { s.read(bufio.NewReader(out)) })
	t.Cleanup(func() {
		_, _ = io.WriteString(in, "kill-server\n") // it may have ended
		reader.Wait()
		_ = in.Close()
		_ = cmd.Wait() // killed is how it ends
	})
	s.next() // the answer to new-session
	return s
}

// read takes what tmux says in control mode: blocks that answer a command, and lines
// that tell what happens.
func (s *Screen) read(r *bufio.Reader) {
	var block *strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			s.change(func() { s.ended = true })
			close(s.answers)
			return
		}
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case word == "%begin":
			block = &strings.Builder{}
		case block != nil && (word == "%end" || word == "%error"):
			s.answers <- answer{block.String(), word == "%end"}
			block = nil
		case block != nil:
			block.WriteString(line)
		default:
			s.change(func() {})
		}
	}
}

func (s *Screen) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	close(s.news)
	s.news = make(chan struct{})
}

// next waits for the answer to a command.
func (s *Screen) next() string {
	s.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a, more := <-s.answers:
		if !more {
			s.t.Fatal("tmux has ended")
		}
		if !a.ok {
			s.t.Fatalf("tmux: %s", a.text)
		}
		return a.text
	case <-timer.C:
		s.t.Fatal("tmux does not answer")
	}
	return ""
}

// do gives tmux a command; words with spaces are quoted by the caller.
func (s *Screen) do(format string, args ...any) string {
	s.t.Helper()
	s.ask.Lock()
	defer s.ask.Unlock()
	if _, err := fmt.Fprintf(s.in, format+"\n", args...); err != nil {
		s.t.Fatalf("tmux: %v", err)
	}
	return s.next()
}

// Text is the screen, without the empty rows below what was printed.
func (s *Screen) Text() string {
	s.t.Helper()
	return strings.TrimRight(s.do("capture-pane -p"), "\n")
}

// Joined is everything printed so far, also above the screen, with lines whole that
// did not fit into a row.
func (s *Screen) Joined() string {
	s.t.Helper()
	return strings.TrimRight(s.do("capture-pane -p -J -S -"), "\n")
}

// Coloured is the screen with its colours, as SGR sequences.
func (s *Screen) Coloured() string {
	s.t.Helper()
	return strings.TrimRight(s.do("capture-pane -p -e"), "\n")
}

// Type sends keys, by the names that tmux gives them.
func (s *Screen) Type(keys string) {
	s.t.Helper()
	s.do("send-keys %s", keys)
}

// Paste pastes as a terminal does: between marks, when the command asked for them.
func (s *Screen) Paste(text string) {
	s.t.Helper()
	s.do("set-buffer -b paste %s", quote(text))
	s.do("paste-buffer -p -b paste")
}

// quote is text as one word of tmux's language.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Resize gives the terminal another size.
func (s *Screen) Resize(columns, rows int) {
	s.t.Helper()
	s.do("resize-window -x %d -y %d", columns, rows)
}

// Await looks at the screen whenever something was printed until good says that it is
// as wanted, and returns it. What is missing is what good returns otherwise.
func (s *Screen) Await(good func(screen string) (missing string)) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	again := time.NewTicker(time.Second) // should tmux forget to tell
	defer again.Stop()
	for {
		s.mu.Lock()
		news, ended := s.news, s.ended
		s.mu.Unlock()
		text := s.Text()
		missing := good(text)
		if missing == "" {
			return text
		}
		if ended {
			s.t.Fatalf("tmux has ended; missing: %s", missing)
		}
		select {
		case <-news:
		case <-again.C:
		case <-ctx.Done():
			s.t.Fatalf("%s\nthe screen:\n%s", missing, text)
		}
	}
}
