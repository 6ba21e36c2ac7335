// Package usher is the front door for programs that embed usher:
//
//	h, err := usher.Open(ctx, nil)       // the user's own configuration
//	defer h.Close()
//	result, err := h.Call(ctx, "github", "search_issues", []byte(`{"query":"bug"}`), nil)
package usher

import (
	"context"

	"github.com/usher-mcp/usher/internal/app"
)

type (
	// Host is everything: servers, policy and store.
	Host = app.App
	// Options steer [Open]. The zero value opens what the usher command would.
	Options = app.Options
	// CallOptions steer one call. The zero value works.
	CallOptions = app.CallOptions
)

// Open wires a host. Nothing is started and nothing is reached before it is used.
func Open(ctx context.Context, opt *Options) (*Host, error) { return app.Open(ctx, opt) }

// Executable returns what Options.Executable should be in a program whose main
// function calls process.Main first.
func Executable() string { return app.Executable() }
