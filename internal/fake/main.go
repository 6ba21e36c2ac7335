package fake

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

// Main is a fake server as a command: it serves stdio, or HTTP with --http, until
// stdin ends. It returns the exit code.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	var c command
	if code, stop := c.parse(args, errw); stop {
		return code
	}
	if exposed(args) {
		fmt.Fprintln(errw, "fake: a secret of an authorization server stands in the arguments or the environment of this process")
		return 2
	}
	opts, err := c.options(errw)
	if err != nil {
		fmt.Fprintln(errw, "fake:", err)
		return 2
	}
	s := New(opts)
	defer func() {
		s.Close()
		_ = s.ledger.Close() // every line was written already
	}()
	if err := s.children(out, errw); err != nil {
		fmt.Fprintln(errw, "fake:", err)
		return 1
	}
	if v, deaf := s.sw.get("neverexit"); deaf {
		ignoreSignals()
		// The last resort, so that a failed test leaves nothing forever.
		time.AfterFunc(time.Duration(v.number(600))*time.Second, func() { os.Exit(exitCode) })
	}
	if c.http != "" {
		return s.mainHTTP(c, in, out, errw)
	}
	switch err := s.ServeStdio(context.Background(), in, out); {
	case errors.Is(err, ErrExited):
		return exitCode
	case err != nil:
		fmt.Fprintln(errw, "fake:", err)
		return 1
	}
	return 0
}

type command struct {
	name, versions, ledger, http, instructions, demo string
	switches                                         []string
	tools, page, ttl                                 int
	corpus, stay                                     bool
}

func (c *command) parse(args []string, errw io.Writer) (code int, stop bool) {
	fs := flag.NewFlagSet("fake", flag.ContinueOnError)
	fs.SetOutput(errw)
	fs.StringVar(&c.name, "name", "fake", "`name` of the server")
	fs.StringVar(&c.versions, "versions", "", "comma-separated `revisions` it speaks; all when empty")
	fs.StringVar(&c.ledger, "ledger", "", "append what happens to this `file`")
	fs.StringVar(&c.http, "http", "", "serve HTTP on this `address` instead of stdio, and print the URL")
	fs.StringVar(&c.instructions, "instructions", "", "instructions `text`")
	fs.IntVar(&c.tools, "tools", 0, "offer `N` generated tools more")
	fs.IntVar(&c.page, "page", 0, "entries per page of a list")
	fs.IntVar(&c.ttl, "ttl", 0, "ttlMs of lists")
	fs.BoolVar(&c.stay, "stay", false, "serve HTTP until a signal, not until stdin ends")
	fs.StringVar(&c.demo, "demo", "", "offer the tools of this `server` of the demo instead")
	fs.BoolVar(&c.corpus, "corpus", false, "offer the tools of the fidelity corpus too")
	fs.Func("switch", "turn on a misbehaviour: `NAME[=VALUE][;on=METHOD,...][;after=N][;times=N]`", func(v string) error {
		c.switches = append(c.switches, v)
		return nil
	})
	fs.Usage = func() {
		fmt.Fprintln(errw, "A misbehaving MCP server.")
		fs.PrintDefaults()
		fmt.Fprint(errw, "\nSwitches:\n", Help())
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0, true
	} else if err != nil {
		return 2, true
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(errw, "fake: unexpected argument %q\n", fs.Arg(0))
		return 2, true
	}
	return 0, false
}

func (c *command) options(errw io.Writer) (*Options, error) {
	o := &Options{Name: c.name, Instructions: c.instructions, PageSize: c.page, ListTTL: c.ttl, Switches: c.switches, Stderr: errw, Exit: os.Exit}
	if c.versions != "" {
		o.Versions = strings.Split(c.versions, ",")
	}
	for _, sw := range c.switches {
		if _, err := ParseSwitch(sw); err != nil {
			return nil, err
		}
	}
	if c.tools > 0 {
		o.Switches = append(o.Switches, fmt.Sprintf("manytools=%d", c.tools))
	}
	if c.demo != "" {
		if o.Tools = Demo(c.demo); o.Tools == nil {
			return nil, fmt.Errorf("the demo has no server %q", c.demo)
		}
	}
	if c.corpus {
		o.Tools = append(DefaultTools(), CorpusTools()...)
	}
	if c.ledger == "" {
		return o, nil
	}
	l, err := OpenLedger(c.ledger)
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	o.Ledger = l
	return o, nil
}

// mainHTTP serves HTTP until stdin ends, or until a signal comes.
func (s *Server) mainHTTP(c command, in io.Reader, out, errw io.Writer) int {
	url, stop, err := s.ListenOn(c.http)
	if err != nil {
		fmt.Fprintln(errw, "fake:", err)
		return 1
	}
	defer stop()
	fmt.Fprintln(out, url+"/mcp")
	if c.stay {
		ctx, end := signal.NotifyContext(context.Background(), os.Interrupt)
		defer end()
		<-ctx.Done()
		return 0
	}
	_, _ = io.Copy(io.Discard, in) // its end is all that matters
	return 0
}

// Help lists the switches, one line each.
func Help() string {
	var b strings.Builder
	for _, i := range Switches() {
		name := i.Name
		if i.Value != "" {
			name += "=…"
		}
		fmt.Fprintf(&b, "  %-24s %s", name, i.Doc)
		if i.Value != "" {
			fmt.Fprintf(&b, " (%s)", i.Value)
		}
		if i.On != "" {
			fmt.Fprintf(&b, " [on %s]", i.On)
		}
		if i.Only != "" {
			fmt.Fprintf(&b, " [%s only]", i.Only)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func ignoreSignals() { signal.Ignore(deafTo()...) }
