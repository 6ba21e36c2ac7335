package server

import (
	"context"
	"errors"
	"slices"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// listRows judges the servers that were asked for, all when none was named.
func listRows(ctx context.Context, f *cmdutil.Factory, cfg *config.Config, o *listOptions) []cmdutil.ServerState {
	held := cmdutil.HeldBack(ctx, f, cfg)
	var rows []cmdutil.ServerState
	for _, s := range cfg.Servers {
		if len(o.names) > 0 && !slices.Contains(o.names, s.Name) {
			continue
		}
		r := cmdutil.StateOf(s, held)
		r.Server = s.Masked()
		// A definition nobody has agreed to gets no values, not even to be looked at.
		if o.resolve && (r.State == cmdutil.StateOK || r.State == cmdutil.StateDisabled) {
			resolved, err := s.Resolve(ctx, shownValues(f, cfg))
			if err != nil {
				r.State, r.Reason, r.Err = cmdutil.StateBroken, err.Error(), err
			} else {
				r.Server = resolved
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// brokenThings lists everything that keeps something from being used: files,
// settings, and servers among those that were asked for.
func brokenThings(cfg *config.Config, rows []cmdutil.ServerState, names []string) []error {
	var out []error
	if len(names) == 0 {
		for _, f := range cfg.Files {
			out = append(out, cmdutil.Flatten(f.Err)...)
		}
		for _, err := range cmdutil.Flatten(cfg.Usher.Problem) {
			if !slices.ContainsFunc(out, func(e error) bool { return e.Error() == err.Error() }) {
				out = append(out, err)
			}
		}
	}
	for _, r := range rows {
		out = append(out, cmdutil.Flatten(r.Err)...)
	}
	return out
}

// shownValues are the values that can be shown: commands are not run for it, and
// nobody is asked.
func shownValues(f *cmdutil.Factory, cfg *config.Config) config.Lookup {
	stored := func(ctx context.Context, name string) (string, bool, error) {
		if f.Cfg == nil {
			f.Cfg = cfg // its warnings have been told
		}
		h, err := f.Open(ctx)
		if err != nil {
			return "", false, err
		}
		value, err := h.Secrets().Get(ctx, name)
		if errors.Is(err, vault.ErrNotFound) {
			return "", false, nil
		}
		return value.Reveal(), err == nil, err
	}
	return config.Lookup{Env: f.IO.System.WithDefaults().LookupEnv, Secret: stored, Input: stored}
}
