package process

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The defaults of Options.
const (
	DefaultGrace       = 2 * time.Second
	DefaultKill        = 3 * time.Second
	DefaultStderrBytes = 64 << 10
)

// Options says what to run and how to end it. Only Command is required.
type Options struct {
	// Command is a program name, looked up on the PATH of Env, or a path,
	// relative to Dir when it is not absolute.
	Command string
	// Args are handed to the program one by one. No shell reads them.
	Args []string
	// Env is the whole environment of the child as NAME=value. Nil means
	// SafeEnv(os.Environ(), nil), never everything.
	Env []string
	// Dir is the child's working directory. Empty means the caller's.
	Dir string

	// Stderr receives the child's standard error. Give the same ring to the
	// next child of a server and its record survives the restart. Nil means a
	// new ring of StderrBytes, which ends with the child.
	Stderr *Ring
	// StderrBytes bounds the ring made when Stderr is nil. Zero means
	// DefaultStderrBytes.
	StderrBytes int

	// Grace is how long the child may take to leave after its input was closed,
	// before SIGTERM. Zero means DefaultGrace, below zero means no wait.
	Grace time.Duration
	// Kill is how long the tree may take to leave after SIGTERM, before SIGKILL.
	// Zero means DefaultKill, below zero means no wait.
	Kill time.Duration

	// Shim is a program that calls Main first, normally Self(): the child then
	// runs below it and its whole tree ends with this process, even on SIGKILL.
	// Empty means no shim. Only Linux uses it.
	Shim string
	// Spare is a shim that was started ahead, from the same program as Shim. The
	// first child that is given one takes it; nil, and one that was taken, mean that
	// the shim is started now.
	Spare *Spare
	// Registry is a directory that remembers running children until they are
	// gone, so that Reap can end those a killed host left behind. The child then
	// sees one more variable, USHER_CHILD. Empty means no record. Windows does
	// not need it.
	Registry string
}

func (o Options) withDefaults() Options {
	o.Grace = max(cmp.Or(o.Grace, DefaultGrace), 0)
	o.Kill = max(cmp.Or(o.Kill, DefaultKill), 0)
	if o.StderrBytes <= 0 {
		o.StderrBytes = DefaultStderrBytes
	}
	if o.Env == nil {
		o.Env = SafeEnv(os.Environ(), nil)
	}
	return o
}

// spec is what a launcher needs: everything resolved, nothing left to default.
type spec struct {
	path        string
	argv        []string
	env         []string
	dir         string
	stdio       [3]*os.File
	grace, kill time.Duration
	shim        string
	guard       *guard // started ahead; nil: it is started now
	marker      string
}

func (o Options) resolve() (*spec, error) {
	dir, err := absoluteDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", o.Command, err)
	}
	if err := checkStrings(o); err != nil {
		return nil, fmt.Errorf("start %q: %w", o.Command, err)
	}
	path, err := lookPath(o.Command, o.Env, dir)
	if err != nil {
		return nil, err
	}
	return &spec{
		path:  path,
		argv:  append([]string{o.Command}, o.Args...),
		env:   o.Env,
		dir:   dir,
		grace: o.Grace,
		kill:  o.Kill,
		shim:  o.Shim,
	}, nil
}

func absoluteDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("working directory %q: %w", dir, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("working directory: %w; create it or change cwd", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("working directory %s is not a directory; change cwd", abs)
	}
	return abs, nil
}

// checkStrings refuses what the system could only cut short: a NUL ends a string
// there.
func checkStrings(o Options) error {
	if o.Command == "" {
		return fmt.Errorf("the command is empty; name a program")
	}
	if strings.ContainsRune(o.Command, 0) {
		return fmt.Errorf("the command contains a NUL byte")
	}
	for i, a := range o.Args {
		if strings.ContainsRune(a, 0) {
			return fmt.Errorf("argument %d contains a NUL byte", i+1)
		}
	}
	for _, e := range o.Env {
		name, _, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return fmt.Errorf("environment entry %q has no name; write NAME=value", name)
		}
		if strings.ContainsRune(e, 0) {
			return fmt.Errorf("variable %s contains a NUL byte", strings.ReplaceAll(name, "\x00", ""))
		}
	}
	return nil
}
