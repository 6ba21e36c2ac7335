// Package torture is the command usher-torture, which checks what usher promises.
//
// [Main] runs it. It is a program of its own, so that usher does not carry servers that
// misbehave: it starts the usher program beside it against them, kills it, races it and
// lies to it. It is also the servers and the child processes of such a run: with the
// argument fake it is a server, with torture-child a process that is killed or raced.
package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/torture"
)

// Main runs the command and returns its exit code.
func Main(args []string, w cmdutil.IO) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, args, w)
}

// run is Main without signals, and returns the exit code.
func run(ctx context.Context, args []string, w cmdutil.IO) int {
	if len(args) > 0 {
		switch args[0] {
		case torture.ChildCommand:
			return torture.Child(ctx, args[1:], os.Stdin, os.Stdout)
		case "fake":
			return fake.Main(args[1:], os.Stdin, os.Stdout, os.Stderr)
		}
	}
	f := &cmdutil.Factory{IO: w}
	c := newCmdTorture(f, nil)
	c.SetArgs(args)
	err := c.ExecuteContext(ctx)
	f.Report(err)
	return cmdutil.ExitCode(err)
}

type tortureOptions struct {
	f       *cmdutil.Factory
	usher   string
	seed    uint64
	minutes float64
	promise int
	json    bool
}

// newCmdTorture is the command. Tests give runF to see what the flags say.
func newCmdTorture(f *cmdutil.Factory, runF func(context.Context, *tortureOptions) error) *cobra.Command {
	o := &tortureOptions{f: f}
	c := &cobra.Command{
		Use: "usher-torture", Short: "Stress-test usher's guarantees", Args: cmdutil.ExactArgs(0),
		SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Long: `Run usher against servers that misbehave, kill it, race it and feed it wrong data, and
count the broken guarantees. It reads and changes none of your files, and nothing
leaves this machine.

Without --minutes it takes some seconds. With it, each guarantee is tested in full
(10,000 kills, 1,000 races, …); a test that does not finish in time is reported as
truncated. On two idle cores 20 minutes are enough.

The guarantees:
` + promiseList(),
		Example: `  usher-torture
  usher-torture --promise 5
  usher-torture --minutes 20 --seed 7 --json > report.json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(c.Context(), o)
			}
			return tortureRun(c.Context(), o)
		},
	}
	c.SetOut(f.IO.Out)
	c.SetErr(f.IO.Err)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cmdutil.Usagef("usher-torture --help", "%v", err) })
	c.Flags().StringVar(&o.usher, "usher", "", "the usher `program` to check (default: the one next to this program, or in PATH)")
	c.Flags().Uint64Var(&o.seed, "seed", 1, "`number` that makes a run repeatable")
	c.Flags().Float64Var(&o.minutes, "minutes", 0, "run the full tests, for at most this many `minutes`")
	c.Flags().IntVar(&o.promise, "promise", 0, "check only the guarantee with this `number`")
	c.Flags().BoolVar(&o.json, "json", false, "print the report as JSON")
	return c
}

// findUsher is the program to check: as it was given, beside self, or in PATH.
func findUsher(given, self string) (string, error) {
	if given != "" {
		return exec.LookPath(given)
	}
	beside := filepath.Join(filepath.Dir(self), "usher"+filepath.Ext(self))
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return beside, nil
	}
	path, err := exec.LookPath("usher")
	if err != nil {
		return "", cmdutil.WithHint(errors.New("no usher program next to this one, and none in PATH"), "usher-torture --usher PROGRAM")
	}
	return path, nil
}

// versionOf asks the program that is checked for its version.
func versionOf(ctx context.Context, exe string) (string, error) {
	out, err := exec.CommandContext(ctx, exe, "version", "--json").Output()
	if err != nil {
		return "", fmt.Errorf("%s version: %w", exe, err)
	}
	var b cmdutil.Build
	if err := json.Unmarshal(out, &b); err != nil {
		return "", fmt.Errorf("%s version: %w", exe, err)
	}
	return b.Number, nil
}

func promiseList() string {
	var b strings.Builder
	names := torture.Names()
	for _, n := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "  %d  %s\n", n, names[n])
	}
	return b.String()
}

func tortureRun(ctx context.Context, opt *tortureOptions) error {
	f := opt.f
	if _, ok := torture.Names()[opt.promise]; !ok && opt.promise != 0 {
		return cmdutil.Usagef("usher-torture --help", "there is no promise %d", opt.promise)
	}
	if opt.minutes < 0 {
		return cmdutil.Usagef("usher-torture --minutes 60", "--minutes must not be negative")
	}
	if f.IO.Executable == "" {
		return fmt.Errorf("the program cannot find itself, so it cannot be started and killed")
	}
	usher, err := findUsher(opt.usher, f.IO.Executable)
	if err != nil {
		return err
	}
	version, err := versionOf(ctx, usher)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "usher-torture-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is a temporary directory
	opts := torture.Options{Exe: usher, Self: f.IO.Executable, Dir: dir, Seed: opt.seed, Only: opt.promise, Time: time.Duration(opt.minutes * float64(time.Minute))}
	if !opt.json {
		var mu sync.Mutex // several may be done at the same moment
		opts.Done = func(p torture.Promise) {
			mu.Lock()
			defer mu.Unlock()
			showPromise(f, p)
		}
	}
	report, err := torture.Run(ctx, opts)
	if err != nil {
		return err
	}
	report.Version = version
	if opt.json {
		if err := f.PrintJSON(report); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(f.IO.Out, "\nseed %d, %.0f s\n", report.Seed, report.Seconds)
		sayCutShort(f, report, opt)
	}
	if !report.Kept() {
		return fmt.Errorf("a promise was broken; please report it together with the line above (usher-torture --seed %d)", opt.seed)
	}
	return nil
}

// sayCutShort says what the time did not suffice for.
func sayCutShort(f *cmdutil.Factory, r torture.Report, opt *tortureOptions) {
	var short []string
	for _, p := range r.Promises {
		if !p.Full && p.Skipped == "" {
			short = append(short, fmt.Sprint(p.Number))
		}
	}
	if opt.minutes > 0 && len(short) > 0 {
		f.Note("cut short, the full measure was not reached: promise %s; give it more --minutes", strings.Join(short, ", "))
	}
}

// showPromise prints the outcome for one promise.
func showPromise(f *cmdutil.Factory, p torture.Promise) {
	word := "kept  "
	switch {
	case p.Skipped != "":
		word = "—     "
	case !p.Kept:
		word = "BROKEN"
	}
	fmt.Fprintf(f.IO.Out, "%s  %d  %s (%.1f s)\n           %s\n", word, p.Number, p.Name, p.Seconds, p)
	for _, how := range p.Broken {
		fmt.Fprintf(f.IO.Out, "           ! %s\n", cmdutil.Clean(how))
	}
}
