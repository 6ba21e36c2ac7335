// Command conformance runs the official MCP conformance suite against usher
// and judges what it says.
//
// It owns the running and the judging: it asks the suite which scenarios each
// protocol revision requires, so that none is forgotten; runs each on its own,
// where the exit code counts; and holds the result against floors.json, the
// number of checks that reference implementations pass, since the suite calls
// a client that does nothing green on several scenarios. It refuses to own any
// protocol: the programs under test are ./client and `usher serve`.
//
// Flow, client side: build the client, list the scenarios of each leg, run them
// (two at a time, timing-sensitive ones alone), read each checks.json, print a
// table, and exit 1 on a failure, a warning, a count below its floor or a scenario
// that left no result. Server side (server.go): the same judgement on usher with
// the fixture of the official Go SDK behind it, once per shape of server, revision
// and endpoint.
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
	side   string         // which side usher plays: client, server or both
	via    string         // only client legs of this way in: library or gateway; empty is both
	doc    string         // file for the figures in words; empty writes none
	client string         // ready-built client; empty builds ./client
	run    *regexp.Regexp // scenarios to run; nil runs all
	legs   *regexp.Regexp // legs to run, by name; nil runs all
	out    string         // folder for the suite's own results
	all    bool           // also what takes longer
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
	flags.StringVar(&opt.side, "side", "both", "which side usher plays: client, server or both")
	flags.StringVar(&opt.via, "via", "", "only client legs through this: library or gateway")
	flags.StringVar(&opt.doc, "doc", "", "write the figures to this file, as docs/conformance.md")
	flags.StringVar(&opt.client, "client", "", "judge this program instead of building ./client")
	flags.BoolVar(&opt.all, "all", false, "also all logins through a gateway, the fixtures without usher, and servers of another era than the suite's")
	flags.StringVar(&opt.out, "out", "", "folder for the suite's results (default test/.out/conformance)")
	flags.Func("run", "run only scenarios that match this expression", func(s string) (err error) {
		opt.run, err = regexp.Compile(s)
		return err
	})
	flags.Func("legs", "run only legs whose name matches this expression", func(s string) (err error) {
		opt.legs, err = regexp.Compile(s)
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
	start := time.Now()
	tally := tally{}
	if opt.side != "server" {
		if err := playClients(ctx, s, opt, floors, &tally, w); err != nil {
			return false, err
		}
	}
	if opt.side != "client" {
		if err := playServers(ctx, s, opt, floors, &tally, w); err != nil {
			return false, err
		}
	}
	if opt.doc != "" {
		if err := writeDoc(s, opt.doc, tally.rows); err != nil {
			return false, err
		}
	}
	return tally.close(w, time.Since(start)), ctx.Err()
}

func (o options) chooses(l leg) bool { return o.legs == nil || o.legs.MatchString(l.name()) }

// playClients runs the legs on which usher is the client.
func playClients(ctx context.Context, s suite, opt options, floors floors, tally *tally, w io.Writer) error {
	client, cleanup, err := clientCommand(ctx, s.root, opt)
	if err != nil {
		return err
	}
	defer cleanup()
	for _, l := range legs(client, floors, opt.all) {
		if opt.via != "" && l.via != opt.via || !opt.chooses(l) {
			continue
		}
		l.out = filepath.Join(opt.out, l.name())
		results, err := l.play(ctx, s, opt.run)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name(), err)
		}
		report(w, l, results)
		tally.add(l, results)
	}
	return nil
}

// playServers runs the legs on which usher is the server.
func playServers(ctx context.Context, s suite, opt options, floors floors, tally *tally, w io.Writer) error {
	usher, cleanup, err := build(ctx, s.root, "./cmd/usher")
	if err != nil {
		return err
	}
	defer cleanup()
	for _, l := range serverLegs(floors, opt.all) {
		if !opt.chooses(l.leg) {
			continue
		}
		l.out = filepath.Join(opt.out, l.name())
		results, err := l.play(ctx, s, usher, opt.run)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name(), err)
		}
		report(w, l.leg, results)
		tally.add(l.leg, results)
	}
	return nil
}
