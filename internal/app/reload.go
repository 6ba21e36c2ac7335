package app

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/watch"
	"github.com/usher-mcp/usher/policy"
)

// ConfigChange is what a reload of the configuration changed.
type ConfigChange struct {
	// Changed are the servers that were added, removed or changed, sorted.
	Changed []string `json:"changed"`
	// Notes say what was found and not used.
	Notes []string `json:"notes"`
}

// errNoFiles: a configuration that a program has made cannot be read again.
var errNoFiles = errors.New("the configuration did not come from files, so there is nothing to read again")

// ReloadConfig reads the configuration again and applies it: servers that were added,
// removed or changed connect again when they are next used, all others keep their
// connections; rules, budgets and profiles hold for the calls that begin from now
// on, and agents hear of changed lists. A file that cannot be used changes nothing,
// and is the error; an entry that cannot be used leaves that server as it was.
func (h *App) ReloadConfig(ctx context.Context) (ConfigChange, error) {
	h.changing.Lock()
	defer h.changing.Unlock()
	old := h.Config()
	if len(old.Watch) == 0 {
		return ConfigChange{}, errNoFiles
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
		return ConfigChange{}, fmt.Errorf("the configuration cannot be used and stays as it was: %w", err)
	}
	out := ConfigChange{Notes: keepBroken(next, old)}
	for _, m := range next.Usher.Mistakes {
		out.Notes = append(out.Notes, m.Warning().String())
	}
	out.Notes = append(out.Notes, notYet(next.Usher, old.Usher)...)
	out.Changed = applyConfig(ctx, h, next, old)
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

// applyConfig makes next the configuration, and returns the servers that differ. Servers
// that were spawned beside the configuration stay.
func applyConfig(ctx context.Context, h *App, next, old *config.Config) []string {
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

// WatchConfig reloads the configuration whenever one of its files changes, until ctx
// ends. report receives the outcome of each reload; it must not block for long.
func (h *App) WatchConfig(ctx context.Context, report func(ConfigChange, error)) {
	watch.Files(ctx, func() []string { return h.Config().Watch }, func() { report(h.ReloadConfig(ctx)) })
}

// SetHook replaces the policy of the embedding program for the requests that begin from
// now on; nil removes it. Agents hear that lists have changed.
func (h *App) SetHook(hook policy.Hook) {
	h.gate.SetHook(hook)
	if s := h.surface.Load(); s != nil {
		s.Reconfigured(h.hosted.Names(), profiles(h.Config()))
	}
}
