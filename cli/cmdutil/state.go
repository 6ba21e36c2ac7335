package cmdutil

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/status"
)

// The states of a definition. They are part of the JSON output.
const (
	StateOK       = "ok"
	StateDisabled = string(status.Disabled)
	StateHeld     = string(status.Held)
	StateBroken   = string(status.Broken)
)

// ServerState is a server as it is shown.
type ServerState struct {
	Server config.Server // masked, or resolved when that was asked for
	State  string
	Reason string
	Err    error // why it is broken
}

// StateOf tells whether a definition can be used, and why not.
func StateOf(s config.Server, held func(config.Server) string) ServerState {
	if s.Problem != nil {
		return ServerState{State: StateBroken, Reason: ReasonOf(s.Problem), Err: s.Problem}
	}
	if why := held(s); why != "" {
		return ServerState{State: StateHeld, Reason: why}
	}
	if s.Disabled {
		return ServerState{State: StateDisabled}
	}
	return ServerState{State: StateOK}
}

// ReasonOf is the message without the place, which stands in a column of its own.
func ReasonOf(err error) string {
	var msgs []string
	for _, e := range Flatten(err) {
		var place *config.Error
		if errors.As(e, &place) {
			msgs = append(msgs, place.Msg)
			continue
		}
		msgs = append(msgs, e.Error())
	}
	return strings.Join(msgs, "; ")
}

// HeldBack returns a function that says why a server is held back, or "". The
// store is opened only if there is something to ask it.
func HeldBack(ctx context.Context, f *Factory, cfg *config.Config) func(config.Server) string {
	if !slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return s.Problem == nil && s.NeedsApproval() }) {
		return func(config.Server) string { return "" }
	}
	f.Cfg = cfg
	h, err := f.Open(ctx)
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
		return strings.Join(s.ApprovalReasons(), ", ") + "; " + Remedy(f, "usher approve "+s.Name)
	}
}
