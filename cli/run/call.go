package run

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

type callOptions struct {
	f            *cmdutil.Factory
	server, tool string
	words        []string
	args         string
	timeout      time.Duration
	json         bool
	out          string
}

func newCmdCall(f *cmdutil.Factory, runF func(context.Context, *callOptions) error) *cobra.Command {
	o := &callOptions{f: f}
	if runF == nil {
		runF = callRun
	}
	c := &cobra.Command{
		Use: "call SERVER TOOL [key=value…]", Short: "Call a tool", GroupID: "use", Args: cmdutil.RangeArgs(2, -1),
		Long: `Call a tool and print its result. Values are converted to the types in the tool's
schema; key:=JSON passes JSON unchanged. Ctrl-C also cancels the call at the server.

Exit codes: 0 success, 1 the call failed or the tool returned an error, 2 wrong usage,
10 a login or approval is required, 11 denied, changed or budget exhausted.`,
		Example: `  usher call github search_issues query="is:open label:bug" limit=3
  usher call math add a=1 b=2 --json
  usher call db query --args '{"sql": "select 1"}'
  echo '{"sql": "select 1"}' | usher call db query -
  usher call slow job --timeout 5m`,
		ValidArgsFunction: cmdutil.CompleteServers(f, 2),
		RunE: func(c *cobra.Command, args []string) error {
			o.server, o.tool, o.words = args[0], args[1], args[2:]
			return runF(c.Context(), o)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.args, "args", "", "arguments as a JSON `object`")
	flags.DurationVar(&o.timeout, "timeout", 0, "timeout of the whole command, including connecting and waiting for other processes, e.g. 90s (default: the server's timeouts)")
	flags.BoolVar(&o.json, "json", false, "print the raw result, exactly as the server sent it")
	flags.StringVar(&o.out, "out", ".", "`directory` to save images and files into")
	return c
}

func callRun(ctx context.Context, o *callOptions) error {
	f := o.f
	if o.timeout < 0 {
		return cmdutil.Usagef("write it like 90s or 5m", "--timeout must not be negative")
	}
	if o.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, o.timeout)
		defer stop()
	}
	f.First = o.server
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	arguments, err := readArguments(o.words, o.args, f.IO.In, func() ([]byte, error) {
		tool, err := h.Tool(ctx, o.server, o.tool)
		if err != nil {
			return nil, err
		}
		schema, _ := jsonx.Get(tool.Definition, "inputSchema")
		return schema, nil
	})
	if err != nil {
		return err
	}
	h.ConnectEarly(ctx, o.server, o.tool)
	progress := newProgress(f)
	result, err := h.Call(ctx, o.server, o.tool, arguments, &app.CallOptions{
		Timeout: o.timeout, OnNotification: progress.hear, Answer: answer(f, o.server),
	})
	progress.clear()
	if err != nil {
		return err
	}
	if o.json {
		if _, err := fmt.Fprintf(f.IO.Out, "%s\n", result); err != nil {
			return err
		}
	} else if err := showResult(f, o, result); err != nil {
		return err
	}
	if failed, _ := jsonx.Get(result, "isError"); string(failed) == "true" {
		return &cmdutil.SilentError{Code: cmdutil.ExitError}
	}
	return nil
}

// progress shows how far a call is, on a terminal only.
type progress struct {
	f     *cmdutil.Factory
	lines chan string
	done  chan struct{}
}

func newProgress(f *cmdutil.Factory) *progress {
	p := &progress{f: f, lines: make(chan string, 1), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		shown := false
		for line := range p.lines {
			fmt.Fprintf(f.IO.Err, "\r\x1b[K%s", cmdutil.Truncate(line, f.IO.Width-1))
			shown = true
		}
		if shown {
			fmt.Fprint(f.IO.Err, "\r\x1b[K")
		}
	}()
	return p
}

// hear takes a notification that belongs to the call. It never blocks: what comes
// too fast is not shown.
func (p *progress) hear(m mcp.Message) {
	switch m.Method {
	case mcp.MethodNotifyProgress:
		if p.f.IO.ErrTTY {
			select {
			case p.lines <- progressLine(m.Params):
			default:
			}
		}
	case mcp.MethodNotifyMessage:
		if p.f.Verbose {
			data, _ := jsonx.Get(m.Params, "data")
			p.f.Note("%s: %s", jsonx.GetText(m.Params, "level"), cmdutil.CleanLine(string(data)))
		}
	}
}

func progressLine(params []byte) string {
	now, _ := jsonx.Get(params, "progress")
	line := cmdutil.Clean(string(now))
	if total, ok := jsonx.Get(params, "total"); ok {
		line += " of " + cmdutil.Clean(string(total))
	}
	return line + "  " + cmdutil.CleanLine(jsonx.GetText(params, "message"))
}

func (p *progress) clear() {
	close(p.lines)
	<-p.done
}

// answer lets a person answer what the server asks; without a terminal every
// question is cancelled.
func answer(f *cmdutil.Factory, server string) func(context.Context, string, []byte) ([]byte, *mcp.Error) {
	return func(ctx context.Context, method string, params []byte) ([]byte, *mcp.Error) {
		if method != mcp.MethodElicit {
			return nil, mcp.Errorf(mcp.CodeMethodNotFound, "%s is not supported by this client", method)
		}
		return ask(ctx, f, server, params), nil
	}
}
