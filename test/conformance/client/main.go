// Command client is the client that the conformance suite judges:
//
//	client [--via library|gateway] [--login browser|paste|async] URL
//
// The suite names the scenario in MCP_CONFORMANCE_SCENARIO and may add details
// in MCP_CONFORMANCE_CONTEXT. The program owns what a person would do in each
// scenario: which server to connect to, which tool to call, what to answer. It
// refuses to own any protocol or OAuth: it fills in usher's configuration and
// calls usher's packages, so that what passes or fails is usher.
//
// It ends by itself within 25 seconds, keeps nothing on disk, and writes only
// to stderr. Exit codes: 0 the scenario went as it should, 1 it did not, 2 the
// scenario is unknown or not supported yet, or the command line is wrong.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/usher-mcp/usher/cli"
)

// deadline is shorter than the suite's own, which does not end a client that
// hangs.
const deadline = 25 * time.Second

// errUsage marks what the caller must change: the command line, or the scenario.
var errUsage = errors.New("usage: client [--via library|gateway] [--login browser|paste|async] URL")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if helped, err := help(ctx, os.Args[1:]); helped {
		if err != nil {
			fmt.Fprintln(os.Stderr, "client:", err)
			os.Exit(1)
		}
		return
	}
	err := takeSlot(ctx, os.Getenv("USHER_CONFORMANCE_SLOTS"))
	if err == nil {
		err = play(ctx, os.Args[1:], os.Getenv, os.Stderr)
	}
	code := 0
	switch {
	case errors.Is(err, errUsage):
		code = 2
	case err != nil:
		code = 1
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
	}
	noteExit(os.Getenv("USHER_CONFORMANCE_EXITS"), os.Getenv("MCP_CONFORMANCE_SCENARIO"), code)
	os.Exit(code)
}

// help plays the other parts: usher as a program, the process that finishes a login,
// and the person's browser.
func help(ctx context.Context, args []string) (helped bool, err error) {
	switch {
	case len(args) > 1 && args[0] == "usher":
		os.Exit(cli.Main(args[1:], cli.System()))
	case len(args) == 3 && args[0] == "complete":
		return true, complete(ctx, args[1], args[2])
	case len(args) == 2 && args[0] == "browse":
		return true, browse(ctx, args[1])
	}
	return false, nil
}

// noteExit leaves the exit code where the runner finds it: when it runs scenarios
// together, the suite does not tell.
func noteExit(path, scenario string, code int) {
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return // the runner misses the note and says so
	}
	defer func() { _ = f.Close() }()
	fmt.Fprintf(f, "%s %d\n", scenario, code)
}

// A task is what the command line and the suite ask for.
type task struct {
	via, login string
	url        string
	name       string // of the scenario
	version    string // revision that the scenario is about
	scenario   scenario
	details    details
	log        *slog.Logger
}

// play carries out one scenario.
func play(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer) error {
	t, err := parse(args, getenv, stderr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, fmt.Errorf("not done after %v", deadline))
	defer cancel()
	s, err := connect(ctx, t)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return errors.Join(t.scenario.act(ctx, s, t.details), s.close())
}

// parse reads the command line and the suite's variables.
func parse(args []string, getenv func(string) string, stderr io.Writer) (task, error) {
	t := task{log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&t.via, "via", "library", "")
	flags.StringVar(&t.login, "login", "browser", "")
	if err := flags.Parse(args); err != nil {
		return t, fmt.Errorf("%w: %w", err, errUsage)
	}
	if flags.NArg() != 1 {
		return t, fmt.Errorf("want one URL, got %d arguments: %w", flags.NArg(), errUsage)
	}
	t.url = flags.Arg(0)
	switch t.login {
	case "browser", "paste", "async":
	default:
		return t, fmt.Errorf("--login %s: %w", t.login, errUsage)
	}
	if text := getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &t.details); err != nil {
			return t, fmt.Errorf("read MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	var err error
	t.name, t.version = getenv("MCP_CONFORMANCE_SCENARIO"), getenv("MCP_CONFORMANCE_PROTOCOL_VERSION")
	t.scenario, err = find(t.name)
	return t, err
}

// find looks a scenario up by the name that the suite gave.
func find(name string) (scenario, error) {
	if sc, ok := scenarios[name]; ok {
		return sc, nil
	}
	switch {
	case name == "":
		return scenario{}, fmt.Errorf("MCP_CONFORMANCE_SCENARIO is not set; the conformance suite sets it: %w", errUsage)
	case strings.HasPrefix(name, "auth/"):
		return scenario{act: listThenCall}, nil
	}
	return scenario{}, fmt.Errorf("unknown scenario %q: %w", name, errUsage)
}
