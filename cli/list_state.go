package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config"
)

// The states of a definition. They are part of the JSON output.
const (
	stateOK       = "ok"
	stateDisabled = "disabled"
	stateHeld     = "held"
	stateBroken   = "broken"
)

// listRow is a server as it is shown.
type listRow struct {
	server config.Server // masked, or resolved when that was asked for
	state  string
	reason string
	err    error // why it is broken
}

// listRows judges the servers that were asked for, all when none was named.
func (a *factory) listRows(ctx context.Context, cfg *config.Config, o listOptions) []listRow {
	held := a.heldBack(ctx, cfg)
	var rows []listRow
	for _, s := range cfg.Servers {
		if len(o.names) > 0 && !slices.Contains(o.names, s.Name) {
			continue
		}
		r := judge(s, held)
		r.server = s.Masked()
		// A definition nobody has agreed to gets no values, not even to be looked at.
		if o.resolve && (r.state == stateOK || r.state == stateDisabled) {
			resolved, err := s.Resolve(ctx, a.shownValues(cfg))
			if err != nil {
				r.state, r.reason, r.err = stateBroken, err.Error(), err
			} else {
				r.server = resolved
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func judge(s config.Server, held func(config.Server) string) listRow {
	if s.Problem != nil {
		return listRow{state: stateBroken, reason: reasonOf(s.Problem), err: s.Problem}
	}
	if why := held(s); why != "" {
		return listRow{state: stateHeld, reason: why}
	}
	if s.Disabled {
		return listRow{state: stateDisabled}
	}
	return listRow{state: stateOK}
}

// reasonOf is the message without the place, which stands in a column of its own.
func reasonOf(err error) string {
	var msgs []string
	for _, e := range flatten(err) {
		var place *config.Error
		if errors.As(e, &place) {
			msgs = append(msgs, place.Msg)
			continue
		}
		msgs = append(msgs, e.Error())
	}
	return strings.Join(msgs, "; ")
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range many.Unwrap() {
		out = append(out, flatten(e)...)
	}
	return out
}

// heldBack returns a function that says why a server is held back, or "". The
// store is opened only if there is something to ask it.
func (a *factory) heldBack(ctx context.Context, cfg *config.Config) func(config.Server) string {
	if !slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return s.Problem == nil && s.NeedsApproval() }) {
		return func(config.Server) string { return "" }
	}
	a.cfg = cfg
	h, err := a.open(ctx)
	return func(s config.Server) string {
		if !s.NeedsApproval() {
			return ""
		}
		approved := false
		if err == nil {
			approved, err = h.Approvals().Approved(ctx, s.Digest())
		}
		switch {
		case err != nil:
			return "approvals cannot be read: " + err.Error()
		case approved:
			return ""
		}
		return strings.Join(s.ApprovalReasons(), ", ") + "; " + a.remedy("usher approve "+s.Name)
	}
}

// brokenThings lists everything that keeps something from being used: files,
// settings, and servers among those that were asked for.
func brokenThings(cfg *config.Config, rows []listRow, names []string) []error {
	var out []error
	if len(names) == 0 {
		for _, f := range cfg.Files {
			out = append(out, flatten(f.Err)...)
		}
		for _, err := range flatten(cfg.Usher.Problem) {
			if !slices.ContainsFunc(out, func(e error) bool { return e.Error() == err.Error() }) {
				out = append(out, err)
			}
		}
	}
	for _, r := range rows {
		out = append(out, flatten(r.err)...)
	}
	return out
}
