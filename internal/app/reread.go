package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/usher-mcp/usher/config"
)

// Reread is what a new look at the configuration has changed.
type Reread struct {
	// Changed are the servers that came, went or are defined differently, sorted.
	Changed []string `json:"changed"`
	// Notes say what was found and not used.
	Notes []string `json:"notes"`
}

// errNoFiles: a configuration that a program has made cannot be read again.
var errNoFiles = errors.New("the configuration did not come from files, so there is nothing to read again")

// Reread reads the configuration again and applies it: servers that came, went or
// changed are connected anew when they are next used, all others keep their
// connections; rules, budgets and profiles hold for the calls that begin from now
// on, and agents hear of changed lists. A file that cannot be used changes nothing,
// and is the error; an entry that cannot be used leaves that server as it was.
func (h *App) Reread(ctx context.Context) (Reread, error) {
	h.changing.Lock()
	defer h.changing.Unlock()
	old := h.Config()
	if len(old.Watch) == 0 {
		return Reread{}, errNoFiles
	}
	next, err := config.Load(h.load)
	for _, f := range next.Files {
		if err == nil && f.Err != nil {
			err = f.Err
		}
	}
	if err == nil {
		err = next.Usher.Problem
	}
	if err != nil {
		return Reread{}, fmt.Errorf("the configuration cannot be used and stays as it was: %w", err)
	}
	out := Reread{Notes: keepBroken(next, old)}
	for _, m := range next.Usher.Mistakes {
		out.Notes = append(out.Notes, m.Warning().String())
	}
	out.Notes = append(out.Notes, notYet(next.Usher, old.Usher)...)
	out.Changed = h.apply(ctx, next, old)
	return out, nil
}

// keepBroken puts the old definition of a server in the place of one that cannot be
// used.
func keepBroken(next, old *config.Config) (notes []string) {
	for i, s := range next.Servers {
		was, known := old.Server(s.Name)
		if s.Problem == nil || !known || was.Problem != nil {
			continue
		}
		next.Servers[i] = was
		notes = append(notes, fmt.Sprintf("%s stays as it was: %v", s.Name, s.Problem))
	}
	return notes
}

// notYet says which settings have changed that only a new start can use.
func notYet(next, old config.Settings) []string {
	for _, s := range []*config.Settings{&next, &old} {
		s.Policy, s.Budgets, s.Gateway.Profiles, s.MaxConnected, s.Problem = config.Policy{}, config.Budgets{}, nil, 0, nil
		s.Mistakes = nil // said already
	}
	if reflect.DeepEqual(next, old) {
		return nil
	}
	return []string{"settings under usher have changed that are used from the next start on"}
}

// apply makes next the configuration, and returns the servers that differ. Servers
// that were spawned beside the configuration stay.
func (h *App) apply(ctx context.Context, next, old *config.Config) []string {
	wanted := *next
	wanted.Servers = slices.DeleteFunc(slices.Clone(next.Servers), func(s config.Server) bool { return s.Problem != nil })
	var spawned []config.Server
	for _, name := range h.hosted.Names() {
		_, before := old.Server(name)
		_, now := next.Server(name)
		if s, ok := h.hosted.Server(name); ok && !before && !now {
			spawned = append(spawned, s)
		}
	}
	wanted.Servers = append(wanted.Servers, spawned...)
	h.cfg.Store(next)
	h.gate.Configure(&wanted)
	changed := h.hosted.Apply(ctx, &wanted)
	for _, name := range changed {
		h.gate.Forget(name)
	}
	if s := h.surface.Load(); s != nil {
		s.Reconfigured(changed, profiles(next))
	}
	return changed
}

// How often the files are looked at, and how long they must have been left alone.
const (
	watchEvery = 2 * time.Second
	watchQuiet = 200 * time.Millisecond
)

// Watch reads the configuration again whenever one of its files changes, appears or
// goes, until ctx ends. said hears of every time; it must not block for long.
func (h *App) Watch(ctx context.Context, said func(Reread, error)) {
	seen := stamps(h.Config().Watch)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := stamps(h.Config().Watch)
		if slices.Equal(now, seen) || !h.settled(ctx, now) {
			continue
		}
		said(h.Reread(ctx))
		seen = stamps(h.Config().Watch)
	}
}

// settled reports that the files stay as they are for a moment: whoever writes
// them is done.
func (h *App) settled(ctx context.Context, now []stamp) bool {
	pause := time.NewTimer(watchQuiet)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-pause.C:
	}
	return slices.Equal(stamps(h.Config().Watch), now)
}

// stamp tells two states of a file apart without reading it.
type stamp struct {
	path  string
	there bool
	size  int64
	mode  os.FileMode
	mod   time.Time
}

func stamps(paths []string) []stamp {
	out := make([]stamp, len(paths))
	for i, path := range paths {
		out[i].path = path
		if info, err := os.Stat(path); err == nil {
			out[i] = stamp{path, true, info.Size(), info.Mode(), info.ModTime()}
		}
	}
	return out
}
