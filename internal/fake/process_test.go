//go:build unix

package fake

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/usher-mcp/usher/internal/wire"
)

// child runs this test binary as a fake server.
func child(t *testing.T, args ...string) (*exec.Cmd, io.WriteCloser, *wire.Lines) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"fake"}, args...)...)
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
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = in.Close()
		_ = out.Close()
		_ = cmd.Wait()
	})
	return cmd, in, wire.NewLines(out, 1<<20)
}

func say(t *testing.T, in io.Writer, lines *wire.Lines, message string) string {
	t.Helper()
	if _, err := io.WriteString(in, message+"\n"); err != nil {
		t.Fatal(err)
	}
	line, err := lines.Next()
	if err != nil {
		return "error: " + err.Error()
	}
	return string(line)
}

// TestSharedLedger lets two processes write one ledger, and the second one have
// another definition.
func TestSharedLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	var lists []string
	for range 2 {
		_, in, lines := child(t, "--name", "both", "--ledger", path, "--switch", "schema-change")
		lists = append(lists, say(t, in, lines, modernList))
		say(t, in, lines, strings.Replace(echoCall, `"echo"`, `"pay"`, 1))
	}
	if strings.Contains(lists[0], "bcc") || !strings.Contains(lists[1], "bcc") {
		t.Errorf("definitions:\n%s\n%s", lists[0], lists[1])
	}
	l, err := ReadLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	pids := map[int]bool{}
	for _, e := range l.Calls("pay") {
		pids[e.PID] = true
	}
	if len(l.Events(EventStart)) != 2 || len(l.Events(EventExecuted)) != 2 || len(pids) != 2 {
		t.Errorf("ledger: %+v", l.Entries())
	}
}

func TestCrash(t *testing.T) {
	for when, executed := range map[string]int{"before": 0, "after": 1} {
		t.Run(when, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger")
			cmd, in, lines := child(t, "--ledger", path)
			got := say(t, in, lines, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"crash","arguments":{"when":"`+when+`","id":"bill"},`+modernMe+`}}`)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitCode || !strings.Contains(got, "EOF") {
				t.Errorf("exit code %d, answer %s", code, got)
			}
			l, err := ReadLedger(path)
			if n := l.Executed("crash", "bill"); err != nil || n != executed {
				t.Errorf("executed %d times, %v", n, err)
			}
		})
	}
}

// TestDeafWithChildren starts a server that ignores everything and leaves two
// grandchildren, and cleans up after it.
func TestDeafWithChildren(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	cmd, in, lines := child(t, "--ledger", path, "--switch", "neverexit=60", "--switch", "fork-child=60", "--switch", "setsid-child=60")
	if got := say(t, in, lines, echoCall); !strings.HasPrefix(got, okEcho) {
		t.Errorf("answer %s", got)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if got := say(t, in, lines, echoCall); !strings.HasPrefix(got, okEcho) {
		t.Errorf("answer after SIGTERM %s", got)
	}
	l, err := ReadLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	children := l.Events(EventChild)
	if len(children) != 2 {
		t.Fatalf("children: %+v", children)
	}
	var sessions []int
	for _, c := range children {
		pid, err := strconv.Atoi(c.Detail)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
		sid, err := getsid(pid)
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, sid)
	}
	own, err := getsid(os.Getpid())
	if err != nil || sessions[0] != own || sessions[1] == own {
		t.Errorf("sessions %v beside %d, %v", sessions, own, err)
	}
	_ = in.Close()
	if _, err := WatchLedger(testContext(t), path, func(e Entry) bool { return e.Event == EventEnd }); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
		t.Errorf("it exited by itself: %v", cmd.ProcessState)
	}
}

func getsid(pid int) (int, error) {
	sid, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(sid), nil
}

func TestMainHTTP(t *testing.T) {
	_, in, lines := child(t, "--http", "127.0.0.1:0", "--tools", "3", "--corpus", "--versions", "2026-07-28")
	line, err := lines.Next()
	if err != nil {
		t.Fatal(err)
	}
	_, hc := serveHTTP(t, New(nil))
	status, _, body := post(t, hc, string(line), modernList)
	if status != 200 || !strings.Contains(body, "tool_00002") || !strings.Contains(body, "c_integers") {
		t.Errorf("%d %s", status, body)
	}
	_ = in.Close()
}

func TestMainRefuses(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--help"}, 0, "silent-probe"},
		{[]string{"--switch", "nope"}, 2, `unknown switch "nope"`},
		{[]string{"--nope"}, 2, "not defined"},
		{[]string{"extra"}, 2, `unexpected argument "extra"`},
		{[]string{"--ledger", filepath.Join(t.TempDir(), "no", "such")}, 2, "open the ledger"},
	} {
		var errw bytes.Buffer
		if code := Main(tt.args, strings.NewReader(""), io.Discard, &errw); code != tt.code || !strings.Contains(errw.String(), tt.want) {
			t.Errorf("%v = %d %s", tt.args, code, &errw)
		}
	}
}

func TestLedgerWaitFor(t *testing.T) {
	l := NewLedger()
	l.Add(Entry{Event: "one"})
	ctx, cancel := context.WithCancel(t.Context())
	if e, err := l.WaitFor(ctx, func(e Entry) bool { return e.Event == "one" }); err != nil || e.PID != os.Getpid() {
		t.Errorf("past: %+v, %v", e, err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := l.WaitFor(ctx, func(e Entry) bool { return e.Event == "two" })
		got <- err
	}()
	l.Add(Entry{Event: "two"})
	if err := <-got; err != nil {
		t.Errorf("future: %v", err)
	}
	cancel()
	if _, err := l.WaitFor(ctx, func(Entry) bool { return false }); err == nil {
		t.Error("never: no error")
	}
	d := DiscardLedger()
	d.Add(Entry{Event: "x"})
	if len(d.Entries()) != 0 {
		t.Error("it remembers")
	}
}
