package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/usher-mcp/usher/test/need"
)

// serverLeg is a pass of the suite over `usher serve` with a fixture behind it.
type serverLeg struct {
	leg
	fixture string            // how the fixture is reached: stdio, stateful or stateless
	joined  bool              // through the endpoint that joins servers, names mapped back
	known   map[string]string // scenarios that cannot pass, and why
}

// serverLegs lists what is judged of usher as a server: each shape of a server
// behind it, with the revisions that shape speaks, untouched and joined.
func serverLegs(floors floors) []serverLeg {
	var all []serverLeg
	for _, shape := range []struct{ fixture, revision string }{
		{"stdio", "2025-11-25"}, {"stdio", "2026-07-28"}, {"stateful", "2025-11-25"}, {"stateless", "2026-07-28"},
	} {
		for _, joined := range []bool{false, true} {
			l := serverLeg{fixture: shape.fixture, joined: joined, known: map[string]string{}}
			l.side, l.revision, l.via, l.floors = "server", shape.revision, shape.fixture, floors["server-"+shape.revision]
			if joined {
				l.via += "-joined"
			}
			l.expectFailures()
			all = append(all, l)
		}
	}
	return all
}

// expectFailures names what cannot pass today.
func (l *serverLeg) expectFailures() {
	if l.fixture == "stateful" {
		l.known["server-sse-polling"] = "the fixture closes its stream without an event id, so its own answer is lost"
	}
}

// noFixture begins the names of scenarios that no fixture can play: an extension.
const noFixture = "tasks-"

// play runs all scenarios of the leg in one go, as the suite does: one after the
// other on one URL.
func (l serverLeg) play(ctx context.Context, s suite, usher string, only *regexp.Regexp) ([]result, error) {
	all, err := s.scenarios(ctx, l.side, l.revision)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*outerTimeout, fmt.Errorf("ended after %v", 2*outerTimeout))
	defer cancel()
	url, stop, err := l.serve(ctx, usher)
	if err != nil {
		return nil, err
	}
	defer stop()
	start := time.Now()
	cmd := s.command(ctx, "server", "--url", url, "--requirements", l.revision, "-o", l.out)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err = cmd.Run()
	if err != nil && ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), err)
	}
	var results []result
	for _, sc := range all {
		if strings.HasPrefix(sc.name, noFixture) || only != nil && !only.MatchString(sc.name) {
			continue
		}
		r := result{scenario: sc, took: time.Since(start), dir: l.resultDir(scenario{name: "server-" + sc.name})}
		r.judge(run{output: output.Bytes()}, r.dir, l.floors)
		r.expect(l.known[sc.name])
		results = append(results, r)
	}
	return results, nil
}

// expect turns the failure of a scenario that is known not to pass into a remark,
// and its passing into a failure: then the reason is out of date.
func (r *result) expect(reason string) {
	switch {
	case reason == "":
	case r.ok():
		r.problems = append(r.problems, "it passes, although it was known that "+reason)
	default:
		r.problems, r.earlier, r.known = nil, []string{"known: " + reason}, true
	}
}

// serve starts the fixture and usher before it, and returns the URL to judge.
func (l serverLeg) serve(ctx context.Context, usher string) (url string, stop func(), err error) {
	home, err := os.MkdirTemp("", "usher-conformance-home-")
	if err != nil {
		return "", nil, err
	}
	var stops []func()
	stop = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
		os.RemoveAll(home)
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	entry, end, err := l.startFixture(ctx)
	if err != nil {
		return "", nil, err
	}
	stops = append(stops, end)
	if err = os.WriteFile(filepath.Join(home, "mcp.json"), []byte(`{"mcpServers":{"conf":`+entry+`}}`), 0o600); err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, usher, "serve", "--http", "127.0.0.1:0", "--surface", "direct")
	cmd.Env = append(os.Environ(), "USHER_HOME="+home)
	base, end, err := startPrinting(cmd, regexp.MustCompile(`serving (http://\S+)/mcp`))
	if err != nil {
		return "", nil, fmt.Errorf("start usher: %w", err)
	}
	stops = append(stops, end)
	if !l.joined {
		return local(base) + "/servers/conf/mcp", stop, nil
	}
	base, end, err = startShim(base+"/direct/mcp", "conf__")
	if err != nil {
		return "", nil, err
	}
	stops = append(stops, end)
	return local(base) + "/mcp", stop, nil
}

// local names this machine as the scenario about rebinding wants it.
func local(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }

// startFixture returns the entry of the fixture in mcp.json.
func (l serverLeg) startFixture(ctx context.Context) (entry string, stop func(), err error) {
	program, err := need.FindFixture()
	if err != nil {
		return "", nil, err
	}
	if l.fixture == "stdio" {
		return fmt.Sprintf(`{"command":%q}`, program), func() {}, nil
	}
	addr, err := freeAddr()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-http", addr, fmt.Sprintf("-stateless=%t", l.fixture == "stateless"))
	endWhole(cmd)
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start the fixture: %w", err)
	}
	stop = func() {
		_ = cmd.Cancel()
		_ = cmd.Wait() // it was told to end
	}
	if err := waitFor(ctx, addr); err != nil {
		stop()
		return "", nil, fmt.Errorf("wait for the fixture: %w", err)
	}
	return fmt.Sprintf(`{"type":"http","url":"http://%s/mcp"}`, addr), stop, nil
}

// startPrinting starts a command and waits for a line on its standard error that
// matches; the first group is returned.
func startPrinting(cmd *exec.Cmd, line *regexp.Regexp) (found string, stop func(), err error) {
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	endWhole(cmd)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for sc := bufio.NewScanner(pipe); sc.Scan(); {
			if m := line.FindStringSubmatch(sc.Text()); m != nil {
				lines <- m[1]
			}
		}
	}()
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		for range lines { // until it has ended
		}
		_ = cmd.Wait() // interrupted
	}
	found, ok := <-lines
	if !ok {
		return "", nil, errors.Join(errors.New("it ended without a word about where it serves"), cmd.Wait())
	}
	return found, stop, nil
}
