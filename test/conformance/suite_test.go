package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/test/need"
)

// installed is the real suite, or the end of the test.
func installed(t *testing.T) suite {
	t.Helper()
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	return suite{root: root, node: need.Node(t), script: need.Conformance(t)}
}

func TestSuiteListsEveryScenarioWithAFloor(t *testing.T) {
	s := installed(t)
	f, err := readFloors()
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string][]scenario{}
	for _, l := range legs("client", f, true) {
		if listed[l.revision] == nil {
			if listed[l.revision], err = s.scenarios(t.Context(), l.side, l.revision); err != nil {
				t.Fatal(err)
			}
		}
		for _, sc := range listed[l.revision] {
			if _, ok := l.floors[sc.name]; !ok {
				t.Errorf("%s: %s has no floor", l.name(), sc.name)
			}
		}
	}
}

// The preload must hold for each way of naming no address, at once and without
// a lookup, and must leave a named address alone.
func TestLoopbackPreload(t *testing.T) {
	s := installed(t)
	const script = `
const net = require('node:net'), http = require('node:http');
const seen = [];
for (const start of [
  () => net.createServer().listen(0),
  () => net.createServer().listen({port: 0}),
  () => http.createServer().listen(0, () => {}),
  () => net.createServer().listen(0, '::'),
  () => net.createServer().listen(0, '0.0.0.0'),
  () => net.createServer().listen(0, '127.0.0.1'),
]) seen.push(new Promise(done => {
  const server = start();
  const at = server.address();
  if (at) { server.close(); return done(at.address); }
  server.on('listening', () => { const late = server.address(); server.close(); done(late.address); });
}));
Promise.all(seen).then(all => console.log(all.join(' ')));
`
	file := filepath.Join(t.TempDir(), "listen.js")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	s.script = file
	out, err := s.command(t.Context()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := strings.TrimSpace(strings.Repeat("127.0.0.1 ", 6))
	if got := strings.TrimSpace(string(out)); got != want {
		t.Errorf("listeners on %q, want %q", got, want)
	}
}

// A client that hangs must not outlive the runner's own deadline, although the
// suite itself would wait for it.
func TestHungClientIsEnded(t *testing.T) {
	s := installed(t)
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "pid")
	client := filepath.Join(dir, "hang")
	if err := os.WriteFile(client, []byte("#!/bin/sh\necho $$ > "+pidFile+"\nexec sleep 300\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var pid string
	var began time.Time
	var wg sync.WaitGroup
	wg.Go(func() {
		pid = firstLine(ctx, pidFile)
		began = time.Now()
		cancel() // it hangs: the time is over
	})
	ended := s.client(ctx, leg{command: client, revision: "2025-11-25"}, scenario{name: "initialize"}, filepath.Join(dir, "out"))
	cancel()
	wg.Wait()
	if ended.err == nil {
		t.Error("a hung client passed")
	}
	if pid == "" {
		t.Fatalf("the client never started: %s", ended.output)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	if !gone(pid, 30*time.Second) {
		t.Errorf("client %s is still running", pid)
	}
}

// firstLine waits until a file has one.
func firstLine(ctx context.Context, path string) string {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		text, _ := os.ReadFile(path) // there is none at first
		if line, _, whole := strings.Cut(string(text), "\n"); whole {
			return line
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ""
		}
	}
}

// gone reports whether a process that was sent SIGKILL has ended, or is only
// waiting to be collected, within the given time.
func gone(pid string, within time.Duration) bool {
	for start := time.Now(); time.Since(start) < within; {
		state, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
		if err != nil || strings.HasPrefix(string(state), "Z") {
			return true
		}
	}
	return false
}
