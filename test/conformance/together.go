package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// exitsVariable names the file in which the client under test notes how each
// scenario ended: running all at once, the suite does not look at exit codes.
const exitsVariable = "USHER_CONFORMANCE_EXITS"

// slotsVariable names the folder in which clients that were started together wait
// for their turn, so that none is late only because two cores have to serve forty.
const slotsVariable = "USHER_CONFORMANCE_SLOTS"

// mayFail are the scenarios in which the client is meant to give up.
var mayFail = []string{
	"auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized",
	"auth/metadata-issuer-mismatch", "auth/resource-mismatch", "auth/scope-retry-limit",
}

// playTogether runs a leg's scenarios in one invocation of the suite, all at once:
// starting Node for each of them would take most of the time. Logins do not depend
// on milliseconds, so this is for them.
func (l leg) playTogether(ctx context.Context, s suite, only *regexp.Regexp) ([]result, error) {
	all, err := s.scenarios(ctx, l.side, l.revision)
	if err != nil {
		return nil, err
	}
	what := []string{"--requirements", l.revision}
	if l.extensions {
		what = []string{"--suite", "extensions"}
	}
	start := time.Now()
	ended, exits := s.clients(ctx, l, what)
	var results []result
	for _, sc := range all {
		isExtension := !sc.scored
		if !strings.HasPrefix(sc.name, l.prefix) || only != nil && !only.MatchString(sc.name) || isExtension != l.extensions {
			continue
		}
		r := result{scenario: sc, dir: filepath.Join(l.out, filepath.Dir(sc.name)), took: time.Since(start)}
		r.judge(run{output: ended.output}, l.resultDir(sc), l.floors)
		switch code, noted := exits[sc.name]; {
		case !noted:
			r.problems = append(r.problems, "the client did not say how it ended")
		case code != "0" && !slices.Contains(mayFail, sc.name):
			r.problems = append(r.problems, "the client exited with code "+code)
		}
		results = append(results, r)
	}
	return results, nil
}

// resultDir is the folder of one scenario among all of a leg; one that does not
// exist when there is none or more than one.
func (l leg) resultDir(sc scenario) string {
	dirs, _ := filepath.Glob(filepath.Join(l.out, sc.name+"-20*"))
	if len(dirs) != 1 {
		return filepath.Join(l.out, "none-for-"+filepath.Base(sc.name))
	}
	return dirs[0]
}

// clients runs many client scenarios at once and returns how each client ended.
func (s suite) clients(ctx context.Context, l leg, what []string) (run, map[string]string) {
	if err := os.MkdirAll(l.out, 0o755); err != nil {
		return run{err: err}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*outerTimeout, fmt.Errorf("ended after %v", 2*outerTimeout))
	defer cancel()
	notes := filepath.Join(l.out, "exits.txt")
	cmd := s.command(ctx, append([]string{"client", "--command", l.command, "-o", l.out, "--timeout", "110000"}, what...)...)
	program, _, _ := strings.Cut(l.command, " ")
	cmd.Env = append(cmd.Env, exitsVariable+"="+notes, slotsVariable+"="+l.out, "BROWSER="+program+" browse")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return run{err: err, output: output.Bytes()}, readExits(notes)
}

func readExits(path string) map[string]string {
	text, _ := os.ReadFile(path) // without it every scenario lacks its note, and fails
	exits := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, code, _ := strings.Cut(strings.TrimSpace(line), " ")
		exits[name] = code
	}
	return exits
}
