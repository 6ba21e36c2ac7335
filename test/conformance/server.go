package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

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
	behind, end, err := startFixture(ctx, l.fixture)
	if err != nil {
		return "", nil, err
	}
	if l.direct {
		return local(behind.URL), end, nil
	}
	stops := []func(){end}
	home, err := os.MkdirTemp("", "usher-conformance-home-")
	if err != nil {
		return "", nil, err
	}
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
	file, err := json.Marshal(map[string]any{"mcpServers": map[string]entry{"conf": behind}})
	if err != nil {
		return "", nil, err
	}
	if l.replicas > 0 {
		base, more, err := startReplicas(ctx, usher, home, file, l.replicas)
		stops = append(stops, more...)
		if err != nil {
			stop()
			return "", nil, err
		}
		return local(base) + "/servers/conf/mcp", stop, nil
	}
	if err = os.WriteFile(filepath.Join(home, "mcp.json"), file, 0o600); err != nil {
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
