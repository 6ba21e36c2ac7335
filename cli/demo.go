package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/vault"
)

func newCmdDemo(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "See usher at work on a small world of its own", GroupID: "use", Args: exactly(0),
		Long: `Start two small servers, list their tools, call one on each, and end. Nothing of
yours is read or changed, and nothing leaves this machine.`,
		Example: "  usher demo",
		RunE:    func(c *cobra.Command, _ []string) error { return a.demo(c.Context()) },
	}
}

// newCmdFake is the stdio server of the demo: this program, as a child of itself.
func newCmdFake() *cobra.Command {
	return &cobra.Command{
		Use: "fake", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := fake.Main(args, os.Stdin, os.Stdout, os.Stderr); code != 0 {
				return &silent{code}
			}
			return nil
		},
	}
}

// demoCall is one call of the demo.
type demoCall struct{ server, tool, args string }

func (a *app) demo(ctx context.Context) error {
	world, err := newDemoWorld(ctx, a)
	if err != nil {
		return err
	}
	defer world.close()
	out := a.io.Out
	fmt.Fprintln(out, "usher demo: a small world on this machine, nothing leaves it")
	fmt.Fprintln(out, "  2 servers   files (stdio, a child process), notes (HTTP)")
	fmt.Fprintln(out, "\nlisting their tools")
	for _, server := range []string{"files", "notes"} {
		began := time.Now()
		list, err := world.host.Tools(ctx, server)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  ok  %-22s %d tools%s\n", server, len(list.Tools), took(began))
	}
	fmt.Fprintln(out, "\ncalling one tool on each")
	for _, call := range []demoCall{
		{"files", "read_text", `{"path":"hello.txt"}`},
		{"notes", "search", `{"query":"usher"}`},
	} {
		if err := a.demoCall(ctx, world.host, call); err != nil {
			return err
		}
	}
	fmt.Fprint(out, `
try next
  usher import             bring in the servers you already have
  usher list               see them and where each comes from
  usher tools NAME         see what one of them can do
`)
	return nil
}

func (a *app) demoCall(ctx context.Context, h *usher.Host, c demoCall) error {
	began := time.Now()
	result, err := h.Call(ctx, c.server, c.tool, []byte(c.args), nil)
	if err != nil {
		return err
	}
	said := ""
	content, _ := jsonx.Get(result, "content")
	for e := jsonx.Array(content); e.Next(); {
		said += jsonx.GetText(e.Value, "text")
	}
	fmt.Fprintf(a.io.Out, "  ok  %-22s %q%s\n", c.server+"."+c.tool, said, took(began))
	return nil
}

func took(since time.Time) string {
	return fmt.Sprintf("   %d ms", max(1, time.Since(since).Milliseconds()))
}

// demoWorld is the servers of the demo and a host in front of them.
type demoWorld struct {
	host *usher.Host
	stop func()
}

func newDemoWorld(ctx context.Context, a *app) (*demoWorld, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	notes := fake.New(&fake.Options{Name: "notes", Tools: demoNotes()})
	url, stop, err := notes.Listen()
	if err != nil {
		return nil, err
	}
	cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{
		config.Server{Name: "files", Transport: config.TransportStdio, Command: exe, Args: []string{"fake", "--name", "files", "--demo"}}.WithDefaults(),
		config.Server{Name: "notes", Transport: config.TransportHTTP, URL: url + "/mcp"}.WithDefaults(),
	}}
	h, err := usher.Open(ctx, &usher.Options{
		Config: cfg, Load: a.loadOptions(), Store: vault.NewMemory(), Log: a.logger(), Executable: a.io.Executable,
		ClientVersion: Version().Number,
	})
	if err != nil {
		stop()
		return nil, err
	}
	return &demoWorld{host: h, stop: stop}, nil
}

func (w *demoWorld) close() {
	_ = w.host.Close() // the demo has said what it had to say
	w.stop()
}

func demoNotes() []fake.Tool {
	return []fake.Tool{
		{
			Def: []byte(`{"name":"search","description":"Search the notes","inputSchema":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]},"annotations":{"readOnlyHint":true}}`),
			Handle: func(context.Context, *fake.Call) ([]byte, error) {
				return fake.TextResult("2 notes: usher in five minutes, shopping list"), nil
			},
		},
		{
			Def: []byte(`{"name":"write","description":"Write a note","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`),
			Handle: func(context.Context, *fake.Call) ([]byte, error) {
				return fake.TextResult("written"), nil
			},
		},
	}
}
