package cmdutil

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/lmittmann/tint"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
)

// Factory is what all commands share: the world, the common flags, and the library,
// opened only by commands that need it.
type Factory struct {
	IO         IO
	ConfigFile string
	Verbose    bool

	First     string            // the account that a command will use first; set before open
	Overrides map[string]string // settings that flags of a command replace, by path
	Cfg       *config.Config
	Opened    *app.App
	OnHangup  atomic.Pointer[func()] // what SIGHUP does; nil: it ends the command
	Observer  observer               // set before open by a command that serves over HTTP
	ServeLog  *slog.Logger           // set before open by a command that serves on standard output
}

// observer records what the opened app does, and sends the rest of it when the command
// ends.
type observer interface {
	Observe(opt *app.Options)
	StopMetrics() // while the app is still open
	StopTraces()
}

// LoadOptions says how the configuration of this command is loaded.
func (f *Factory) LoadOptions() config.LoadOptions {
	return config.LoadOptions{System: f.IO.System, File: f.ConfigFile, Overrides: f.Overrides}
}

// Config loads the configuration once. Warnings and files that cannot be read are
// told on standard error; what can be used is used.
func (f *Factory) Config() (*config.Config, error) {
	if f.Cfg != nil {
		return f.Cfg, nil
	}
	cfg, err := config.Load(f.LoadOptions())
	if err != nil {
		return nil, err
	}
	f.IO.held.holdSetting(cfg.Usher.Key, cfg.Usher.Store)
	f.Warn(cfg)
	for _, file := range cfg.Files {
		for _, err := range Flatten(file.Err) {
			f.Note("%s", Clean("ignored: "+f.ShortError(err).Error()))
		}
	}
	f.Cfg = cfg
	return cfg, nil
}

// Open opens the library.
func (f *Factory) Open(ctx context.Context) (*app.App, error) {
	if f.Opened != nil {
		return f.Opened, nil
	}
	cfg, err := f.Config()
	if err != nil {
		return nil, err
	}
	opt := &app.Options{
		Config: cfg, Load: f.LoadOptions(), Log: f.Logger(), Executable: f.IO.Executable,
		ClientVersion: Version().Number, Prompt: prompt(f), ExitsAfterClose: f.IO.Exits, StartEarly: f.First,
	}
	if f.Observer != nil {
		f.Observer.Observe(opt)
	}
	if f.ServeLog != nil {
		opt.Log = f.ServeLog
	}
	if f.IO.InTTY {
		opt.Capabilities = []byte(elicitation)
	}
	h, err := app.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	f.Opened = h
	return h, nil
}

// Close closes the app, and sends what is left to report about it.
func (f *Factory) Close() {
	if f.Observer != nil {
		f.Observer.StopMetrics()
	}
	if f.Opened != nil {
		_ = f.Opened.Close() // the command's own outcome has been reported
	}
	if f.Observer != nil {
		f.Observer.StopTraces()
	}
}

// Logger writes warnings to standard error, more with --verbose.
func (f *Factory) Logger() *slog.Logger {
	level := slog.LevelError
	if f.Verbose {
		level = slog.LevelDebug
	}
	return slog.New(tint.NewTextHandler(f.IO.Err, &tint.Options{Level: level, NoColor: !f.IO.ErrTTY}))
}

// PrintJSON writes v as one indented JSON value to standard output.
func (f *Factory) PrintJSON(v any) error {
	text, err := JSONText(v)
	if err != nil {
		return err
	}
	_, err = f.IO.Out.Write(text)
	return err
}

// PrintJSONLine writes v as JSON on one line.
func (f *Factory) PrintJSONLine(v any) error {
	enc := json.NewEncoder(f.IO.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Note writes a sentence to standard error. Names in it may come from anywhere:
// what a terminal would act on is shown as an escape.
func (f *Factory) Note(format string, args ...any) {
	fmt.Fprintln(f.IO.Err, Clean(fmt.Sprintf(format, args...)))
}
