package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/process"
)

// lab is what the parts share: the programs to measure, and how long.
type lab struct {
	dir              string // for everything that is made
	usher, echo, sdk string // programs
	quick            bool
	profiles         string // directory, empty for none
	log              io.Writer
	homes            int
}

// newLab builds the programs that have to start as users have them.
func newLab(ctx context.Context, quick bool, profiles string, log io.Writer) (*lab, error) {
	dir, err := os.MkdirTemp("", "usher-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir, quick: quick, profiles: profiles, log: log}
	for path, program := range map[string]*string{"./cmd/usher": &l.usher, "./bench/echo": &l.echo, "./bench/sdkclient": &l.sdk} {
		*program = filepath.Join(dir, filepath.Base(path))
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", *program+".linked", path)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			l.close()
			return nil, fmt.Errorf("build %s: %w\n%s", path, err, out)
		}
		if err := install(*program+".linked", *program); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

// install writes a program again, as everybody gets it: a linker writes pages here and
// there, and the system keeps the file in memory in as many pieces.
func install(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

func (l *lab) close() { _ = os.RemoveAll(l.dir) }

// pick returns the first value, or the second in the quick form.
func pick[T any](l *lab, full, quick T) T {
	if l.quick {
		return quick
	}
	return full
}

// home makes a directory with a configuration for one usher: each server by its
// name, everything that a supervised host does switched on.
func (l *lab) home(servers map[string]string) (string, error) {
	l.homes++
	dir := filepath.Join(l.dir, "home"+strconv.Itoa(l.homes))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	out := []byte("{\"mcpServers\": {\n")
	for name, definition := range servers {
		out = append(append(append(jsonx.AppendText(out, name), ": "...), definition...), ",\n"...)
	}
	out = append(out, settings...)
	return dir, os.WriteFile(filepath.Join(dir, "mcp.json"), out, 0o600)
}

// settings have rules, and budgets that are counted but never used up.
const settings = `}, "usher": {
  "policy": {"allow": ["echo*"], "deny": ["*/never"]},
  "budgets": {"calls": 1000000000000, "window": "1h", "perServer": {"calls": 1000000000000, "window": "1h"}},
  "gateway": {"maxConcurrentCalls": 1024}
}}
`

// at is the definition of a server at an address.
func at(url string) string { return string(jsonx.Set(nil, "url", jsonx.Quote(url))) }

// program is the definition of a server that is started.
func program(path string, args ...string) string {
	list := []byte("[")
	for i, a := range args {
		if i > 0 {
			list = append(list, ',')
		}
		list = jsonx.AppendText(list, a)
	}
	return string(jsonx.Apply(nil, jsonx.Edit{Key: "command", Value: jsonx.Quote(path)}, jsonx.Edit{Key: "args", Value: append(list, ']')}))
}

// startEcho starts the echo server.
func (l *lab) startEcho(ctx context.Context, args ...string) (*child, error) {
	return l.start(ctx, l.echo, args, nil, 1)
}

// startRole starts this program as a contestant.
func (l *lab) startRole(ctx context.Context, env map[string]string, args ...string) (*child, error) {
	return l.start(ctx, process.Self(), args, env, 2)
}

// startUsher serves the servers of a home over HTTP.
func (l *lab) startUsher(ctx context.Context, home string) (*child, error) {
	return l.startRole(ctx, map[string]string{"USHER_HOME": home}, "child-usher", "serve", "--http", "127.0.0.1:0")
}

// start starts a program that says in its first lines where it serves.
func (l *lab) start(ctx context.Context, program string, args []string, env map[string]string, lines int) (*child, error) {
	p, err := process.Start(ctx, process.Options{
		Command: program, Args: args, Shim: process.Self(), Grace: -1, Kill: time.Second,
		Env: process.SafeEnv(os.Environ(), env), Dir: l.dir,
	})
	if err != nil {
		return nil, err
	}
	c := &child{proc: p}
	r := bufio.NewReader(p.Stdout())
	for _, to := range []*string{&c.url, &c.aside}[:lines] {
		line, err := r.ReadString('\n')
		if err != nil {
			c.stop()
			return nil, fmt.Errorf("start %s %s: %w", filepath.Base(program), strings.Join(args, " "), err)
		}
		*to = strings.TrimSpace(line)
	}
	return c, nil
}

// stopAll ends children.
func stopAll(all []*child) {
	for _, c := range all {
		c.stop()
	}
}
