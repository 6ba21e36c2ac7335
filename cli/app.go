package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
)

// factory is what all commands share: the world, the common flags, and the library,
// opened only by commands that need it.
type factory struct {
	io         IO
	configFile string
	verbose    bool

	first     string            // the account that a command will use first; set before open
	overrides map[string]string // settings that flags of a command replace, by path
	cfg       *config.Config
	opened    *app.App
	onHangup  atomic.Pointer[func()] // what SIGHUP does; nil: it ends the command
	telling   *telemetry             // set before open by what serves over HTTP
	serveLog  *slog.Logger           // set before open by what serves on standard output
}

// commands adds every command, in the order of the help text.
func (a *factory) commands(root *cobra.Command) {
	root.AddCommand(
		newCmdLogin(a), newCmdLogout(a), newCmdAuth(a), newCmdServe(a), newCmdConsole(a), newCmdToken(a), newCmdSurface(a),
		newCmdTools(a), newCmdDescribe(a), newCmdCall(a), newCmdSearch(a), newCmdDiscover(a), newCmdCard(a), newCmdDemo(a), newCmdFake(), newCmdTorture(a), newCmdTortureChild(),
		newCmdStatus(a), newCmdDoctor(a), newCmdLogs(a), newCmdAudit(a), newCmdReload(a), newCmdStop(a), newCmdHold(a),
		newCmdPins(a),
		newCmdAdd(a), newCmdRemove(a), newCmdList(a), newCmdApprove(a),
		newCmdInit(a), newCmdImport(a), newCmdExport(a), newCmdLink(a), newCmdUnlink(a), newCmdAllow(a), newCmdDeny(a),
		newCmdSecret(a), newCmdKey(a), newCmdStore(a),
		newCmdVersion(a), newCmdCompletion(a),
	)
}

func (a *factory) loadOptions() config.LoadOptions {
	return config.LoadOptions{System: a.io.System, File: a.configFile, Overrides: a.overrides}
}

// config loads the configuration once. Warnings and files that cannot be read are
// told on standard error; what can be used is used.
func (a *factory) config() (*config.Config, error) {
	if a.cfg != nil {
		return a.cfg, nil
	}
	cfg, err := config.Load(a.loadOptions())
	if err != nil {
		return nil, err
	}
	a.io.held.holdSetting(cfg.Usher.Key, cfg.Usher.Store)
	a.warn(cfg)
	for _, f := range cfg.Files {
		for _, err := range flatten(f.Err) {
			a.note("%s", clean("ignored: "+a.shortError(err).Error()))
		}
	}
	a.cfg = cfg
	return cfg, nil
}

// open opens the library.
func (a *factory) open(ctx context.Context) (*app.App, error) {
	if a.opened != nil {
		return a.opened, nil
	}
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	opt := &app.Options{
		Config: cfg, Load: a.loadOptions(), Log: a.logger(), Executable: a.io.Executable,
		ClientVersion: Version().Number, Prompt: a.prompt(), ExitsAfterClose: a.io.exits, StartEarly: a.first,
	}
	if t := a.telling; t != nil {
		opt.Log, opt.OnCall, opt.Tracer = t.log, t.metrics.onCall, t.tracer
	}
	if a.serveLog != nil {
		opt.Log = a.serveLog
	}
	if a.io.InTTY {
		opt.Capabilities = []byte(elicitation)
	}
	h, err := app.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	a.opened = h
	return h, nil
}

func (a *factory) close() {
	if a.telling != nil {
		a.telling.stopMetrics()
	}
	if a.opened != nil {
		_ = a.opened.Close() // the command's own outcome has been reported
	}
	if a.telling != nil {
		a.telling.stopTraces(a.telling.log)
	}
}

// logger writes warnings to standard error, more with --verbose.
func (a *factory) logger() *slog.Logger {
	level := slog.LevelError
	if a.verbose {
		level = slog.LevelDebug
	}
	return slog.New(tint.NewTextHandler(a.io.Err, &tint.Options{Level: level, NoColor: !a.io.ErrTTY}))
}

// printJSON writes v as one indented JSON value to standard output.
func (a *factory) printJSON(v any) error {
	text, err := jsonText(v)
	if err != nil {
		return err
	}
	_, err = a.io.Out.Write(text)
	return err
}

// printJSONLine writes v as JSON on one line.
func (a *factory) printJSONLine(v any) error {
	enc := json.NewEncoder(a.io.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// note writes a sentence to standard error. Names in it may come from anywhere:
// what a terminal would act on is shown as an escape.
func (a *factory) note(format string, args ...any) {
	fmt.Fprintln(a.io.Err, clean(fmt.Sprintf(format, args...)))
}
