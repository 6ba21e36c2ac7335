package process

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A shim hit by the signals of a terminal or a service manager stops its child; it
// does not leave it.
func TestShimSignalled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			c := start(t, testOptions(mark(t), Self(), "daemon"))
			ready(t, c)
			p, _ := lookup(c.Pid())
			syscall.Kill(p.ppid, sig)
			<-c.Done()
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A shim that is killed takes the child and its group along, and says so.
func TestShimKilled(t *testing.T) {
	m := mark(t)
	c := start(t, testOptions(m, Self(), "fork"))
	ready(t, c)
	p, _ := lookup(c.Pid())
	syscall.Kill(p.ppid, syscall.SIGKILL)
	<-c.Done()
	if err := c.Stop(); err == nil {
		t.Error("Stop does not mention the shim")
	}
	if !eventually(t, patience, func() bool { return len(marked(m)) == 0 }) {
		t.Error("processes left")
	}
}

// A shim that does not react, here because it is stopped, is not waited for.
func TestShimStuck(t *testing.T) {
	m := mark(t)
	c := start(t, testOptions(m, Self(), "fork"))
	ready(t, c)
	p, _ := lookup(c.Pid())
	syscall.Kill(p.ppid, syscall.SIGSTOP)
	c.run.(*shimmed).patience = 400 * time.Millisecond
	if err := c.Stop(); err == nil {
		t.Error("Stop does not say that the tree would not go")
	}
	if !eventually(t, patience, func() bool { return len(marked(m)) == 0 }) {
		t.Error("processes left")
	}
}

// Processes that fork faster than they can be counted end all the same.
func TestRestlessTree(t *testing.T) {
	script := filepath.Join(t.TempDir(), "hop")
	// Every process starts its successor, in a session of its own, and is gone.
	text := "#!/bin/sh\ntrap '' TERM\nsetsid \"$0\" &\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	opt := testOptions(mark(t), Self(), "")
	opt.Command = "sh"
	opt.Args = []string{"-c", "trap '' TERM; " + script + " & " + script + " & echo ready; while :; do sleep 0.01 & done"}
	c := start(t, opt)
	ready(t, c)
	begin := time.Now()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped after %v", time.Since(begin))
}

// What the host ignores, as under nohup, its children do not: they could not be
// stopped by it.
func TestIgnoredSignals(t *testing.T) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGTERM)
	defer signal.Reset(syscall.SIGHUP, syscall.SIGTERM)
	opt := testOptions(mark(t), Self(), "")
	opt.Command, opt.Args = "grep", []string{"SigIgn", "/proc/self/status"}
	c := start(t, opt)
	out, err := io.ReadAll(c.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(string(out), "SigIgn:")), 16, 64)
	if err != nil || ignored&(1<<(syscall.SIGHUP-1)|1<<(syscall.SIGTERM-1)) != 0 {
		t.Errorf("the child ignores %q, %v", out, err)
	}
}
