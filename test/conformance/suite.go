package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/usher-mcp/usher/test/need"
)

// suite is the installed conformance suite.
type suite struct {
	root   string // this checkout
	node   string
	script string
}

// A scenario is one test of the suite. Unscored ones are run and judged like
// the others; the suite itself only reports them.
type scenario struct {
	name   string
	scored bool
}

const (
	// clientTimeout is what the suite gives a client; it does not kill one
	// that hangs.
	clientTimeout = 30 * time.Second
	// outerTimeout ends the suite and everything it started.
	outerTimeout = 60 * time.Second
)

func openSuite() (suite, error) {
	root, err := need.Root()
	if err != nil {
		return suite{}, err
	}
	node, err := need.FindNode()
	if err != nil {
		return suite{}, err
	}
	script, err := need.FindNPM("conformance")
	return suite{root: root, node: node, script: script}, err
}

// scenarios asks the suite what a revision requires of one side.
func (s suite) scenarios(ctx context.Context, side, revision string) ([]scenario, error) {
	ctx, cancel := context.WithTimeout(ctx, outerTimeout)
	defer cancel()
	out, err := s.command(ctx, "list", "--requirements", revision).Output()
	if err != nil {
		return nil, fmt.Errorf("list scenarios: %w", err)
	}
	return parseList(string(out), side)
}

var (
	headLine    = regexp.MustCompile(`^Required for \S+ \((\d+) scenarios`)
	scoredHead  = regexp.MustCompile(`^(Server|Client) scenarios `)
	scenarioRow = regexp.MustCompile(`^\s+- (\S+)(?: \[(client|server)\])?$`)
)

// parseList reads `list --requirements`. The total in its first line guards
// against a change of form that would make scenarios vanish.
func parseList(text, side string) ([]scenario, error) {
	var found []scenario
	want, scored := -1, 0
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m := headLine.FindStringSubmatch(line); m != nil {
			want, _ = strconv.Atoi(m[1])
		} else if m := scoredHead.FindStringSubmatch(line); m != nil {
			section = strings.ToLower(m[1])
		} else if strings.HasPrefix(line, "Run and reported") {
			section = ""
		} else if m := scenarioRow.FindStringSubmatch(line); m != nil {
			of := section
			if section != "" {
				scored++
			} else {
				of = m[2]
			}
			if of == side {
				found = append(found, scenario{name: m[1], scored: section != ""})
			}
		}
	}
	if scored != want {
		return nil, fmt.Errorf("list scenarios: read %d required ones, the suite says %d; has its output changed?", scored, want)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("list scenarios: none for the %s side", side)
	}
	return found, nil
}

// A run is how one invocation of the suite ended.
type run struct {
	err    error  // nil when it exited with 0
	output []byte // what it printed, both streams
}

// clientFailed reports whether the client itself ended badly. The suite's exit
// code does not tell that from a failed check; its words do.
func (r run) clientFailed() bool {
	text := strings.ToLower(string(r.output))
	return strings.Contains(text, "client exited with") || strings.Contains(text, "timed out")
}

// client runs one client scenario; its results land below dir.
func (s suite) client(ctx context.Context, l leg, sc scenario, dir string) run {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return run{err: err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, outerTimeout, fmt.Errorf("ended after %v", outerTimeout))
	defer cancel()
	cmd := s.command(ctx, "client",
		"--command", l.command,
		"--scenario", sc.name,
		"--spec-version", l.revision,
		"--timeout", strconv.FormatInt(clientTimeout.Milliseconds(), 10),
		"-o", dir)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return run{err: err, output: output.Bytes()}
}

// command is the suite with its listeners on loopback only, in a process group
// that ends as a whole with ctx.
func (s suite) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.node, append([]string{s.script}, args...)...)
	preload := filepath.Join(s.root, "test", "conformance", "loopback.cjs")
	cmd.Env = append(os.Environ(), fmt.Sprintf("NODE_OPTIONS=--require %q", preload), "NO_COLOR=1")
	cmd.WaitDelay = 2 * time.Second
	endWhole(cmd)
	return cmd
}
