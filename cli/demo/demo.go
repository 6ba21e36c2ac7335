package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/cli/inspect"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/status"
)

type demoOptions struct {
	f          *cmdutil.Factory
	auto, stay bool
}

func newCmdDemo(f *cmdutil.Factory, runF func(context.Context, *demoOptions) error) *cobra.Command {
	o := &demoOptions{f: f}
	if runF == nil {
		runF = demoRun
	}
	c := &cobra.Command{
		Use: "demo", Short: "Run a self-contained demo", GroupID: "use", Args: cmdutil.ExactArgs(0),
		Long: `Start six sample servers in this process: two stdio servers and four over HTTP; three
require login, one is slow, one crashes now and then. The demo logs in, calls a tool on
each, breaks one, shows it recover, and shows everything in the console. It reads and
changes none of your files, and nothing leaves this machine.

On a terminal the demo opens the consent page in a browser, and the console stays open
until Ctrl-C. Otherwise the demo approves the logins automatically and exits.`,
		Example: `  usher demo
  usher demo --auto                 no browser: approve the logins automatically
  usher demo --auto --stay          and leave the console open until a signal`,
		RunE: func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	c.Flags().BoolVar(&o.auto, "auto", false, "approve the logins automatically")
	c.Flags().BoolVar(&o.stay, "stay", false, "leave the console open at the end, also without a terminal")
	return c
}

// newCmdFake is the stdio server of the demo: this program, as a child of itself.
func newCmdFake() *cobra.Command {
	return &cobra.Command{
		Use: "fake", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := fake.Main(args, os.Stdin, os.Stdout, os.Stderr); code != 0 {
				return &cmdutil.SilentError{Code: code}
			}
			return nil
		},
	}
}

// demoRun tells the story of the demo, one part after the other.
func demoRun(ctx context.Context, o *demoOptions) error {
	f := o.f
	person := f.IO.InTTY && f.IO.OutTTY
	o.auto = o.auto || !person || !cmdutil.HasBrowser(f)
	w, err := newDemoWorld(ctx, f)
	if err != nil {
		return err
	}
	defer w.close()
	s := &demoStory{f: f, w: w}
	s.say("usher demo: six sample servers on this machine, no network access")
	s.say("  6 servers   2 stdio, 4 HTTP (3 require login, at 2 authorization servers)")
	s.say("  console     %s   (one-time link)", w.console.Link())
	for _, part := range []func(context.Context, *demoOptions) error{s.logIn, s.callEach, s.breakOne, s.changeOne, s.status} {
		if err := part(ctx, o); err != nil {
			if ctx.Err() != nil {
				return nil // Ctrl-C is how one leaves
			}
			return err
		}
	}
	s.say(`
try next
  usher import             bring in the servers you already have
  usher login --missing    log in wherever that is needed
  usher link --all         point your agents at usher`)
	if person || o.stay {
		s.stay(ctx)
	}
	return nil
}

// demoStory prints what happens.
type demoStory struct {
	f *cmdutil.Factory
	w *demoWorld
}

func (s *demoStory) say(format string, args ...any) {
	fmt.Fprintln(s.f.IO.Out, cmdutil.Clean(fmt.Sprintf(format, args...)))
}

// row says how one thing went: with a symbol on a terminal, with a word everywhere.
func (s *demoStory) row(good bool, what, words string, began time.Time) {
	sign, paint := "ok  ", "32"
	if !good {
		sign, paint = "no  ", "31"
	}
	if s.f.IO.OutTTY {
		sign = map[bool]string{true: "✔ ", false: "✖ "}[good]
	}
	if s.f.IO.Colour() {
		sign = "\x1b[" + paint + "m" + sign + "\x1b[0m"
	}
	took := ""
	if !began.IsZero() {
		took = fmt.Sprintf("%d ms", max(1, time.Since(began).Milliseconds()))
		if d := time.Since(began); d >= 10*time.Second {
			took = inspect.Spoken(d)
		}
	}
	fmt.Fprintf(s.f.IO.Out, "  %s%-16s %7s   %s\n", sign, cmdutil.Clean(what), took, cmdutil.Clean(words))
}

// logIn logs in everywhere: by the hand of a person, or by itself.
func (s *demoStory) logIn(ctx context.Context, o *demoOptions) error {
	ctx, stop := context.WithTimeout(ctx, 10*time.Minute)
	defer stop()
	d, err := s.w.console.Connect()
	if err != nil {
		return err
	}
	sub := d.Subscribe()
	defer sub.Close()
	began := time.Now()
	auto := make(chan struct{})
	if o.auto {
		s.say("\nlogging in to 3 servers; approved automatically by the demo")
		close(auto)
	} else {
		s.say("\nlogging in to 3 servers: consent in the browser, or press Enter and the demo does")
		if err := cmdutil.OpenBrowser(ctx, s.f.IO.Env("BROWSER"), s.w.console.ConnectLink()); err != nil {
			s.say("  it did not open by itself: %v", err)
		}
		go s.awaitEnter(auto)
	}
	var done, asked []string
	for len(done) < len(s.w.signIn) {
		if done, asked, err = s.advance(ctx, d.Rows(), auto, done, asked, began); err != nil {
			return err
		}
		wait, cancel := context.WithTimeout(ctx, 200*time.Millisecond) // Enter is no event
		_, _, _ = sub.Next(wait)
		cancel()
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the logins: %w", ctx.Err())
		}
	}
	return nil
}

// advance tells of logins that have ended and consents to those that wait, if it may.
func (s *demoStory) advance(ctx context.Context, rows []bulk.Row, auto <-chan struct{}, done, asked []string, began time.Time) (ended, open []string, err error) {
	for _, r := range rows {
		as := s.w.signIn[r.Server]
		switch {
		case as == nil || slices.Contains(done, r.Server):
		case r.Phase == bulk.PhaseFailed:
			return done, asked, fmt.Errorf("log in to %s: %s", r.Server, r.Detail)
		case r.Phase == bulk.PhaseConnected:
			words := "connected, at " + as.name
			if other := s.w.sharedWith(r.Server, done); other != "" {
				words += ", same sign-in as " + other
			}
			s.row(true, r.Server, words, began)
			done = append(done, r.Server)
		case r.Login == nil || slices.Contains(asked, r.Server):
			select {
			case <-auto:
				return done, asked, nil
			default:
			}
		default:
			select {
			case <-auto:
			default:
				continue
			}
			// One after the other, as a person would, so that the story reads well.
			return done, append(asked, r.Server), s.w.consent(ctx, r.Server, r.Login.AuthorizeURL)
		}
	}
	return done, asked, nil
}

// awaitEnter closes auto when the person presses Enter.
func (s *demoStory) awaitEnter(auto chan<- struct{}) {
	if _, err := bufio.NewReader(s.f.IO.In).ReadString('\n'); err == nil {
		close(auto)
	}
}

// demoCall is one call of the demo.
type demoCall struct{ server, tool, args string }

func demoCalls() []demoCall {
	return []demoCall{
		{"files", "read_text", `{"path":"hello.txt"}`},
		{"flaky", "balance", `{}`},
		{"notes", "search", `{"query":"usher"}`},
		{"tickets", "list", `{}`},
		{"mail", "unread", `{}`},
		{"reports", "weekly", `{}`},
	}
}

func (s *demoStory) callEach(ctx context.Context, _ *demoOptions) error {
	s.say("\ncalling one tool on each")
	for _, c := range demoCalls() {
		began := time.Now()
		text, err := s.w.call(ctx, c)
		if err != nil {
			return err
		}
		s.row(true, c.server+"/"+c.tool, text, began)
	}
	return nil
}

// call runs a tool and returns the text of its answer.
func (w *demoWorld) call(ctx context.Context, c demoCall) (string, error) {
	result, err := w.host.Call(ctx, c.server, c.tool, []byte(c.args), nil)
	if err != nil {
		return "", err
	}
	said := ""
	content, _ := jsonx.Get(result, "content")
	for e := jsonx.Array(content); e.Next(); {
		said += jsonx.GetText(e.Value, "text")
	}
	return said, nil
}

// breakOne shows what a crash in the middle of a call means, and that it passes.
func (s *demoStory) breakOne(ctx context.Context, _ *demoOptions) error {
	s.say("\nbreaking flaky on purpose: it exits in the middle of a call")
	_, err := s.w.call(ctx, demoCall{"flaky", "pay", `{"id":"7","break":true}`})
	if !errors.Is(err, host.ErrOutcomeUnknown) {
		return fmt.Errorf("flaky was to break, but: %w", err)
	}
	s.row(false, "flaky/pay", "outcome unknown: it died after the request was sent; not repeated", time.Time{})
	began := time.Now()
	if _, err := s.w.call(ctx, demoCall{"flaky", "balance", `{}`}); err != nil {
		return err
	}
	for _, st := range s.w.host.Status().Servers {
		if st.Name == "flaky" {
			s.row(true, "flaky/balance", fmt.Sprintf("restarted (%d of 5 in 5 min), and the next call works", st.RestartCount), began)
		}
	}
	return nil
}

// changeOne shows what happens to a tool that changes after it was trusted.
func (s *demoStory) changeOne(ctx context.Context, _ *demoOptions) error {
	s.say("\ntickets changes the description of its tool close")
	s.w.tickets.SetTools(fake.DemoChanged())
	if err := s.w.host.Servers().Reload(ctx, "tickets"); err != nil {
		return err
	}
	if _, err := s.w.host.Tools(ctx, "tickets"); err != nil {
		return err
	}
	_, err := s.w.call(ctx, demoCall{"tickets", "close", `{"id":"1"}`})
	if err == nil {
		return errors.New("a tool that had changed was called")
	}
	s.row(false, "tickets/close", "blocked until you review the change: usher pins diff, or the console", time.Time{})
	return nil
}

// status shows the table of usher status.
func (s *demoStory) status(ctx context.Context, _ *demoOptions) error {
	s.say("\nusher status")
	for _, srv := range s.w.host.Config().Servers { // lists from before a restart are out of date
		if _, err := s.w.host.Tools(ctx, srv.Name); err != nil {
			return err
		}
	}
	b := inspect.MergeBoard(host.Status{}, []status.Report{s.w.host.Servers().Report()})
	b.AddConfigured(s.w.host.Config(), func(config.Server) string { return "" })
	fmt.Fprint(s.f.IO.Out, b.Table(inspect.Look(s.f, time.Now())))
	return nil
}

// demoPace is how often something is called while somebody looks at the console.
const demoPace = 1300 * time.Millisecond

// stay keeps the world alive, with a little traffic, until ctx ends.
func (s *demoStory) stay(ctx context.Context) {
	s.say("\nthe console stays open: %s\nCtrl-C ends it", s.w.console.Link())
	tick := time.NewTicker(demoPace)
	defer tick.Stop()
	calls := demoCalls()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_, _ = s.w.call(ctx, calls[i%len(calls)]) // the console shows how it went
		}
	}
}
