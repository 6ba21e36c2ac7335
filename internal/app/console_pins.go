package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/console"
	"github.com/usher-mcp/usher/policy/pins"
)

// Pins are the tools that changed and are blocked.
func (w *consoleWorld) Pins(ctx context.Context) ([]console.Pin, error) {
	store := w.h.Pins()
	all, err := store.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []console.Pin
	for _, p := range all {
		if p.State != pins.StateChanged {
			continue
		}
		d, err := store.Diff(ctx, p.Server, p.Tool)
		if errors.Is(err, pins.ErrNotPinned) || err == nil && d.Hash == "" {
			continue // accepted or forgotten a moment ago
		}
		if err != nil {
			return out, err
		}
		v := console.Pin{Server: p.Server, Tool: p.Tool, Hash: d.Hash, Since: p.At, Hidden: d.Hidden, Incomplete: d.Incomplete}
		for _, c := range d.Changes {
			v.Changes = append(v.Changes, viewChange(c))
		}
		out = append(out, v)
	}
	return out, nil
}

func viewChange(c pins.Change) console.Change {
	v := console.Change{What: c.What(), Kind: c.Kind}
	for _, l := range c.Lines() {
		v.Lines = append(v.Lines, console.DiffLine{Sign: string(l.Sign), Text: l.Text})
	}
	return v
}

// Accept takes a changed definition as the new pin.
func (w *consoleWorld) Accept(ctx context.Context, server, tool, hash string) error {
	accepted, err := w.h.Pins().Accept(ctx, server, tool, hash)
	switch {
	case errors.Is(err, pins.ErrNotPinned):
		return fmt.Errorf("%s/%s is not pinned any more", server, tool)
	case err != nil:
		return err
	case len(accepted) == 0:
		return fmt.Errorf("%s/%s has nothing to accept: somebody was faster", server, strings.TrimSpace(tool))
	}
	return nil
}
