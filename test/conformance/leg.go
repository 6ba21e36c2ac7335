package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// A leg is one pass of the suite over usher: one side of the protocol, one
// revision, one way in.
type leg struct {
	side     string // which side usher plays
	revision string // requirement set and wire version
	via      string
	command  string // the program under test, as the suite's --command
	floors   map[string]int
	out      string // folder for the suite's results
	prefix   string // only scenarios whose names begin so; empty is all
	without  string // but not those whose names begin so; empty is none
	login    string // the form of login that is judged: browser, paste or async

	together   bool // all scenarios in one run of the suite, see playTogether
	extensions bool // the extensions that no revision requires, instead of its requirements
}

// legs lists what is judged of usher as a client, as a library and through a
// gateway. All logins through a gateway take a minute: without all it is one of the
// three forms.
func legs(client string, floors floors, all bool) []leg {
	var out []leg
	for _, via := range []string{"library", "gateway"} {
		command := client + " --via " + via
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			out = append(out, leg{
				side: "client", revision: revision, via: via,
				command: command, floors: floors["client-default"], without: "auth/",
			})
		}
		for _, login := range []string{"browser", "paste", "async"} {
			l := leg{
				side: "client", via: via, login: login, command: command + " --login " + login,
				floors: floors["client-default"], prefix: "auth/", together: true,
			}
			if via == "gateway" {
				// Each request that bears the token is a check, and a gateway that
				// keeps its connection may make one fewer.
				l.floors = overlaid(l.floors, floors["client-gateway"])
			}
			for _, revision := range []string{"2025-11-25", "2026-07-28"} {
				if l.revision = revision; via == "library" || all || login == "async" && revision == "2026-07-28" {
					out = append(out, l)
				}
			}
			if l.extensions = true; via == "library" || all {
				out = append(out, l)
			}
		}
	}
	return out
}

// overlaid are floors with those that are particular to a way in their place.
func overlaid(floors, particular map[string]int) map[string]int {
	out := maps.Clone(floors)
	maps.Copy(out, particular)
	return out
}

func (l leg) name() string {
	parts := []string{l.side, l.via, l.login, l.revision}
	if l.extensions {
		parts = append(parts, "extensions")
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "-")
}

// title is the leg in words, for the report.
func (l leg) title() string {
	what := "revision " + l.revision
	if l.extensions {
		what = "extensions"
	}
	title := fmt.Sprintf("usher as %s, %s, %s", l.side, l.via, what)
	if l.login != "" {
		title += ", login by " + l.login
	}
	return title
}

const (
	width = 2 // scenarios at once: each is a Node process, and CI has two cores

	// timingTries is how often a scenario may be run when nothing is wrong but
	// the milliseconds it measures, which a busy machine can delay.
	timingTries = 3
)

// timing names the scenarios that measure when the client acts, with the check
// that does so. They run alone, before the others.
var timing = map[string]string{"sse-retry": "client-sse-retry-timing"}

// play runs the leg's scenarios and returns their results in the suite's order.
func (l leg) play(ctx context.Context, s suite, only *regexp.Regexp) (results []result, err error) {
	if l.together {
		return l.playTogether(ctx, s, only)
	}
	all, err := s.scenarios(ctx, l.side, l.revision)
	if err != nil {
		return nil, err
	}
	var covered []scenario
	for _, sc := range all {
		left := l.without != "" && strings.HasPrefix(sc.name, l.without)
		if !left && strings.HasPrefix(sc.name, l.prefix) && (only == nil || only.MatchString(sc.name)) {
			covered = append(covered, sc)
		}
	}
	results = make([]result, len(covered))
	for i, sc := range covered {
		if timing[sc.name] != "" {
			results[i] = l.patiently(ctx, s, sc)
		}
	}
	var g errgroup.Group
	g.SetLimit(width)
	for i, sc := range covered {
		if timing[sc.name] == "" {
			g.Go(func() error {
				results[i] = l.once(ctx, s, sc, 1)
				return nil
			})
		}
	}
	return results, g.Wait()
}

// patiently gives a scenario that was only late a second and third try, and
// keeps what was wrong before for the table. Any other problem, such as a client
// that hangs now and then, counts at once: repeating it would hide a race.
func (l leg) patiently(ctx context.Context, s suite, sc scenario) result {
	var earlier []string
	for try := 1; ; try++ {
		r := l.once(ctx, s, sc, try)
		r.earlier = earlier
		if r.ok() || !r.onlyLate || try == timingTries || ctx.Err() != nil {
			return r
		}
		earlier = append(earlier, fmt.Sprintf("try %d: %s", try, strings.Join(r.problems, "; ")))
	}
}

// once runs one scenario and judges it.
func (l leg) once(ctx context.Context, s suite, sc scenario, try int) result {
	start := time.Now()
	dir := filepath.Join(l.out, strings.ReplaceAll(sc.name, "/", "_"), fmt.Sprint(try))
	r := result{scenario: sc, dir: dir}
	run := s.client(ctx, l, sc, dir)
	r.judge(run, dir, l.floors)
	r.took = time.Since(start)
	return r
}

// clientCommand returns the --command of the client under test, building it when
// none was given.
func clientCommand(ctx context.Context, root string, opt options) (command string, cleanup func(), err error) {
	if opt.client != "" {
		return opt.client, func() {}, nil
	}
	program, cleanup, err := build(ctx, root, "./test/conformance/client")
	if err != nil {
		return "", nil, err
	}
	return program, cleanup, nil
}

// build builds a program, without the race detector: it would make forty clients at
// once too slow to be judged, and races are looked for by the other tests.
func build(ctx context.Context, root, pkg string) (program string, cleanup func(), err error) {
	dir, err := os.MkdirTemp("", "usher-conformance-")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for %s: %w", pkg, err)
	}
	cleanup = func() { os.RemoveAll(dir) }
	program = filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		cleanup()
		return "", nil, fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return program, cleanup, nil
}
