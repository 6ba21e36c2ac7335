// Command conformance runs the official MCP conformance suite against usher
// and judges what it says.
//
// It owns the running and the judging: it asks the suite which scenarios each
// protocol revision requires, so that none is forgotten; runs each on its own,
// where the exit code counts; and holds the result against floors.json, the
// number of checks that reference implementations pass, since the suite calls
// a client that does nothing green on several scenarios. It refuses to own any
// protocol: the program under test is ./client.
//
// Flow: build the client, list the scenarios of each leg, run them (two at a
// time, timing-sensitive ones alone), read each checks.json, print a table,
// and exit 1 on a failure, a warning, a count below its floor or a scenario
// that left no result.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"
)

// options are what the command line chooses.
type options struct {
	via    string         // what is judged: library or gateway
	client string         // ready-built client; empty builds ./client
	run    *regexp.Regexp // scenarios to run; nil runs all
	out    string         // folder for the suite's own results
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	opt, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		os.Exit(2)
	}
	ok, err := conformance(ctx, opt, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// parse reads the command line; the flag package has already said what is wrong.
func parse(args []string, stderr io.Writer) (options, error) {
	opt := options{}
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&opt.via, "via", "library", "what the client goes through: library or gateway")
	flags.StringVar(&opt.client, "client", "", "judge this program instead of building ./client")
	flags.StringVar(&opt.out, "out", "", "folder for the suite's results (default test/.out/conformance)")
	flags.Func("run", "run only scenarios that match this expression", func(s string) (err error) {
		opt.run, err = regexp.Compile(s)
		return err
	})
	err := flags.Parse(args)
	return opt, err
}

// conformance runs every leg and reports whether all of them passed.
func conformance(ctx context.Context, opt options, w io.Writer) (bool, error) {
	s, err := openSuite()
	if err != nil {
		return false, err
	}
	if opt.out == "" {
		opt.out = filepath.Join(s.root, "test", ".out", "conformance")
	}
	if err := os.RemoveAll(opt.out); err != nil {
		return false, fmt.Errorf("clear old results: %w", err)
	}
	floors, err := readFloors()
	if err != nil {
		return false, err
	}
	client, cleanup, err := clientCommand(ctx, s.root, opt)
	if err != nil {
		return false, err
	}
	defer cleanup()

	start := time.Now()
	tally := tally{}
	for _, l := range legs(opt.via, client, floors) {
		l.out = filepath.Join(opt.out, l.name())
		results, err := l.play(ctx, s, opt.run)
		if err != nil {
			return false, fmt.Errorf("%s: %w", l.name(), err)
		}
		report(w, l, results)
		tally.add(results)
	}
	return tally.close(w, time.Since(start)), ctx.Err()
}
