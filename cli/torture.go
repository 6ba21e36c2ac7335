package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/internal/torture"
)

type tortureOptions struct {
	seed    uint64
	minutes float64
	promise int
	json    bool
}

func newCmdTorture(a *factory) *cobra.Command {
	var opt tortureOptions
	c := &cobra.Command{
		Use: "torture", Short: "Check what usher promises, on this machine", GroupID: "run", Args: exactly(0),
		Long: `Run this program against servers that misbehave, kill it, race it and lie to it,
and count what comes of that. Nothing of yours is read or changed, and nothing
leaves this machine.

Without --minutes it takes some seconds. With it, each promise is put to the test
until its full measure is reached (10,000 kills, 1,000 races, …); what the minutes do
not suffice for is cut short, and said to be. On two idle processors 20 are enough.

The promises:
` + promiseList(),
		Example: `  usher torture
  usher torture --promise 5
  usher torture --minutes 20 --seed 7 --json > report.json`,
		RunE: func(c *cobra.Command, _ []string) error { return a.torture(c.Context(), opt) },
	}
	c.Flags().Uint64Var(&opt.seed, "seed", 1, "do the same things in the same order as another run with this `number`")
	c.Flags().Float64Var(&opt.minutes, "minutes", 0, "try all of it, but for no more than this many `minutes`")
	c.Flags().IntVar(&opt.promise, "promise", 0, "check only the promise with this `number`")
	c.Flags().BoolVar(&opt.json, "json", false, "print the report as JSON")
	return c
}

// newCmdTortureChild is a process that a run of torture kills or races.
func newCmdTortureChild() *cobra.Command {
	return &cobra.Command{
		Use: torture.ChildCommand, Hidden: true, DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if code := torture.Child(c.Context(), args, os.Stdin, os.Stdout); code != 0 {
				return &silent{code}
			}
			return nil
		},
	}
}

func promiseList() string {
	var b strings.Builder
	names := torture.Names()
	for _, n := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "  %d  %s\n", n, names[n])
	}
	return b.String()
}

func (a *factory) torture(ctx context.Context, opt tortureOptions) error {
	if _, ok := torture.Names()[opt.promise]; !ok && opt.promise != 0 {
		return usagef("usher torture --help", "there is no promise %d", opt.promise)
	}
	if opt.minutes < 0 {
		return usagef("usher torture --minutes 60", "--minutes must not be negative")
	}
	if a.io.Executable == "" {
		return fmt.Errorf("the program cannot find itself, so it cannot be started and killed")
	}
	dir, err := os.MkdirTemp("", "usher-torture-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is a temporary directory
	run := torture.Options{Exe: a.io.Executable, Dir: dir, Seed: opt.seed, Only: opt.promise, Time: time.Duration(opt.minutes * float64(time.Minute))}
	if !opt.json {
		var mu sync.Mutex // several may be done at the same moment
		run.Done = func(p torture.Promise) {
			mu.Lock()
			defer mu.Unlock()
			a.showPromise(p)
		}
	}
	report, err := torture.Run(ctx, run)
	if err != nil {
		return err
	}
	report.Version = Version().Number
	if opt.json {
		if err := a.printJSON(report); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.io.Out, "\nseed %d, %.0f s\n", report.Seed, report.Seconds)
		a.sayCutShort(report, opt)
	}
	if !report.Kept() {
		return fmt.Errorf("a promise was broken; please report it together with the line above (usher torture --seed %d)", opt.seed)
	}
	return nil
}

// sayCutShort says what the time did not suffice for.
func (a *factory) sayCutShort(r torture.Report, opt tortureOptions) {
	var short []string
	for _, p := range r.Promises {
		if !p.Full && p.Skipped == "" {
			short = append(short, fmt.Sprint(p.Number))
		}
	}
	if opt.minutes > 0 && len(short) > 0 {
		a.note("cut short, the full measure was not reached: promise %s; give it more --minutes", strings.Join(short, ", "))
	}
}

// showPromise prints the outcome for one promise.
func (a *factory) showPromise(p torture.Promise) {
	word := "kept  "
	switch {
	case p.Skipped != "":
		word = "—     "
	case !p.Kept:
		word = "BROKEN"
	}
	fmt.Fprintf(a.io.Out, "%s  %d  %s (%.1f s)\n           %s\n", word, p.Number, p.Name, p.Seconds, p)
	for _, how := range p.Broken {
		fmt.Fprintf(a.io.Out, "           ! %s\n", clean(how))
	}
}
