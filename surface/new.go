package surface

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/internal/suggest"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
)

// Surface makes the views on all servers behind a gate. All methods may be used
// concurrently.
type Surface struct {
	gate    *policy.Gate
	opt     Options
	names   naming.Scheme
	started time.Time
	life    context.Context
	end     context.CancelFunc

	profiles  atomic.Pointer[map[string]profile]
	snaps     snapshots
	readings  readings
	lanes     lanes
	listeners listeners
	flights   flights
	follows   follows
	auto      func() (string, Explanation)

	mu     sync.Mutex // guards closed, and wg.Add against Close
	closed bool
	wg     sync.WaitGroup
}

// New returns the surface of what gate lets through. Close it, before the gate.
func New(gate *policy.Gate, opt *Options) *Surface {
	s := &Surface{gate: gate, started: time.Now()}
	if opt != nil {
		s.opt = *opt
	}
	s.opt.TokenBudget = cmp.Or(s.opt.TokenBudget, DefaultTokenBudget)
	s.opt.Separator = cmp.Or(s.opt.Separator, DefaultSeparator)
	s.opt.Name, s.opt.Version = cmp.Or(s.opt.Name, "usher"), cmp.Or(s.opt.Version, "dev")
	s.opt.Quiet = cmp.Or(s.opt.Quiet, DefaultQuiet)
	if s.opt.Log == nil {
		s.opt.Log = slog.New(slog.DiscardHandler)
	}
	s.setProfiles(s.opt.Profiles)
	s.names = naming.Scheme{Separator: s.opt.Separator}
	s.life, s.end = context.WithCancel(context.Background())
	s.auto = sync.OnceValues(s.decide)
	if s.opt.Events != nil {
		sub := s.opt.Events.Subscribe(0)
		s.spawn(func() { s.watch(sub) })
	}
	return s
}

// Meta is the view with the one tool that stands for all servers.
func (s *Surface) Meta() View { return &meta{endpoint{s: s, hints: &metaHints}} }

// Direct is the view with the tools of all servers.
func (s *Surface) Direct() View { return &direct{endpoint{s: s, hints: &directHints}} }

// Profile is the direct view narrowed to a profile. The error is [ErrUnknownView].
func (s *Surface) Profile(name string) (View, error) {
	all := *s.profiles.Load()
	if _, ok := all[name]; !ok {
		return nil, fmt.Errorf("%w: no profile is named %q", ErrUnknownView, name)
	}
	return &direct{endpoint{s: s, profile: name, hints: &directHints}}, nil
}

// Server is the view on one server ("name" or "name@account"), untouched, if it
// exists for the agent. The error is [ErrUnknownView].
func (s *Surface) Server(ctx context.Context, a Agent, name string) (View, error) {
	e := endpoint{s: s, hints: &singleHints}
	k, err := s.gate.Resolve(ctx, e.agent(a).who, name, mcp.MethodInitialize)
	switch {
	case err == nil:
		return &single{e, k.Server, k.Account}, nil
	case errors.Is(err, policy.ErrDenied):
		return &refused{e, err}, nil // the agent is told so in the protocol
	}
	return nil, fmt.Errorf("%w: %w", ErrUnknownView, err)
}

// Auto is the meta or the direct view. Which one is decided the first time, from
// configuration and catalog, and never again: lists must not vary per connection.
func (s *Surface) Auto() (View, Explanation) {
	mode, why := s.auto()
	if mode == ModeDirect {
		return s.Direct(), why
	}
	return s.Meta(), why
}

// Close ends everything that runs for the surface.
func (s *Surface) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.wg.Wait()
}

// spawn runs f in the background, unless the surface is closed, and reports whether.
func (s *Surface) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Go(f)
	return true
}

// local is the principal of a single user's process.
const local = "local"

func (s *Surface) normal(k policy.Key) policy.Key {
	k.Principal = cmp.Or(k.Principal, local)
	return k
}

// profile is a profile and its scope for agents that have none of their own.
type profile struct {
	Profile
	scope *policy.Scope
}

func (s *Surface) setProfiles(all map[string]Profile) {
	out := make(map[string]profile, len(all))
	for name, p := range all {
		out[name] = profile{p, (*policy.Scope)(nil).Within(name, p)}
	}
	s.profiles.Store(&out)
}

// scope is what exists for an agent at an endpoint.
func (s *Surface) scope(a Agent, name string) *policy.Scope {
	own := policy.NewScope(a.Servers, a.Tools)
	if name == "" {
		return own
	}
	p := (*s.profiles.Load())[name] // one that is gone selects nothing
	if own == nil && p.scope != nil {
		return p.scope
	}
	return own.Within(name, p.Profile)
}

func didYouMean(name string, known []string) string {
	near := suggest.Similar(name, known)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}
