package pins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// Store lists, compares, accepts and removes the pins of one principal. It needs no
// connection: a changed definition is kept beside its pin until it is accepted. A
// server is a name, or name@account.
type Store struct {
	records   vault.Records
	principal string
}

// NewStore returns the pins of principal, of [vault.Local] when empty.
func NewStore(records vault.Records, principal string) *Store {
	if principal == "" {
		principal = vault.Local
	}
	return &Store{records: records, principal: principal}
}

// Pinned is one tool and how it stands to its pin.
type Pinned struct {
	Server string
	Tool   string
	// State is one of the State constants.
	State string
	// Hash is the pinned one, in hex.
	Hash string
	// Fields names the members that differ, when the state is changed.
	Fields []string
	// Hidden names the members with invisible text, of the definition that waits
	// when there is one.
	Hidden []string
	// From is the name a renamed tool had before.
	From string
	// First is when the tool was first seen, At when it was pinned or changed.
	First, At time.Time
}

// How a tool stands to its pin.
const (
	StateSame    = "same"
	StateChanged = "changed"
	StateNew     = "new"
	StateRenamed = "renamed"
	StateRemoved = "removed"
)

// List returns everything that is pinned, by server and tool.
func (p *Store) List(ctx context.Context) ([]Pinned, error) {
	recs, err := p.all(ctx)
	if err != nil {
		return nil, err
	}
	var out []Pinned
	for _, server := range slices.Sorted(maps.Keys(recs)) {
		tools := recs[server].Tools
		for _, tool := range slices.Sorted(maps.Keys(tools)) {
			out = append(out, tools[tool].pinned(server, tool))
		}
	}
	return out, nil
}

func (p *pin) pinned(server, tool string) Pinned {
	out := Pinned{Server: server, Tool: tool, State: StateSame, Hash: p.Hash, From: p.From, First: p.First, At: p.At}
	current := p.Definition
	switch {
	case p.Pending != nil:
		out.State, out.At = StateChanged, p.Pending.At
		out.Fields = changedMembers(p.Definition, p.Pending.Definition)
		current = p.Pending.Definition
	case p.Gone != nil:
		out.State, out.At = StateRemoved, *p.Gone
	case p.From != "":
		out.State = StateRenamed
	case p.New:
		out.State = StateNew
	}
	out.Hidden = Hidden(current)
	return out
}

// ErrNotPinned means that there is no pin under that name.
var ErrNotPinned = errors.New("not pinned")

// Diff is how a changed tool differs from its pin.
type Diff struct {
	Server, Tool string
	// Hash identifies the changed definition; pass it to Accept to accept that
	// one and no later one. It is empty when the tool is what was pinned.
	Hash    string
	Changes []Change
	// Hidden names the members of the changed definition with invisible text.
	Hidden []string
	// Incomplete: the definition was too large to keep, only its hash is known.
	Incomplete bool
}

// String shows the diff, one change after the other.
func (d Diff) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", toolName(d.Server, d.Tool))
	if d.Incomplete {
		b.WriteString("  the definition differs, but is too large to have been kept\n")
	}
	for _, c := range d.Changes {
		fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(c.String(), "\n", "\n  "))
	}
	for _, member := range d.Hidden {
		fmt.Fprintf(&b, "  warning: invisible characters in %s\n", member)
	}
	return b.String()
}

// Diff compares a tool with its pin. The error is [ErrNotPinned] for a tool that
// was never seen.
func (p *Store) Diff(ctx context.Context, server, tool string) (Diff, error) {
	rec, err := p.load(ctx, server)
	if err != nil {
		return Diff{}, err
	}
	pin := rec.Tools[tool]
	if pin == nil {
		return Diff{}, fmt.Errorf("%s: %w", toolName(server, tool), ErrNotPinned)
	}
	d := Diff{Server: server, Tool: tool}
	if pin.Pending == nil {
		return d, nil
	}
	d.Hash = pin.Pending.Hash
	if pin.Definition == nil || pin.Pending.Definition == nil {
		d.Incomplete = true
		return d, nil
	}
	d.Changes = Compare(pin.Definition, pin.Pending.Definition)
	d.Hidden = Hidden(pin.Pending.Definition)
	return d, nil
}

func (p *Store) load(ctx context.Context, server string) (*record, error) {
	rec, err := p.records.Get(ctx, p.key(server))
	if errors.Is(err, vault.ErrNotFound) {
		return nil, fmt.Errorf("%s: %w", toolName(server, ""), ErrNotPinned)
	}
	if err != nil {
		return nil, fmt.Errorf("pins of %s: %w", server, err)
	}
	return decode(rec.Data)
}

func (p *Store) key(server string) vault.Key {
	return vault.Key{Kind: vault.KindPin, Principal: p.principal, Name: server}
}

// ChangedAgainError means that the server changed a tool again after a person looked
// at the change that they accept.
type ChangedAgainError struct {
	Server string // or server@account
	Tool   string
}

func (e *ChangedAgainError) Error() string {
	return toolName(e.Server, e.Tool) + " changed again since it was looked at"
}

// Hint is the next step for a person.
func (e *ChangedAgainError) Hint() string { return "review the change again" }

// toolName is how people and commands name a tool: server/tool. Without a tool it is
// the server.
func toolName(server, tool string) string {
	if tool != "" {
		server += "/" + tool
	}
	return config.Unquoted(server)
}

// errNothing ends an update that has nothing to write.
var errNothing = errors.New("nothing to write")

// Accept takes the changed definition of a tool as its new pin, or of all tools of
// the server when tool is empty, and returns the tools concerned. With a hash
// (from [Diff]) it accepts that definition only: a server may have changed it
// again after a person looked. Running processes notice at the next call.
func (p *Store) Accept(ctx context.Context, server, tool, hash string) ([]string, error) {
	var accepted []string
	_, err := vault.Update(ctx, p.records, p.key(server), func(old []byte) ([]byte, error) {
		accepted = nil
		rec, err := decode(old)
		if err != nil {
			return nil, err
		}
		if tool != "" && rec.Tools[tool] == nil || old == nil {
			return nil, fmt.Errorf("%s: %w", toolName(server, tool), ErrNotPinned)
		}
		for _, name := range slices.Sorted(maps.Keys(rec.Tools)) {
			pin := rec.Tools[name]
			if tool != "" && name != tool {
				continue
			}
			if hash != "" && pin.Pending != nil && pin.Pending.Hash != hash {
				return nil, &ChangedAgainError{Server: server, Tool: name}
			}
			if pin.accept() {
				accepted = append(accepted, name)
			}
		}
		if accepted == nil {
			return nil, errNothing
		}
		return rec.encode()
	})
	if err != nil && !errors.Is(err, errNothing) {
		return nil, fmt.Errorf("accept: %w", err)
	}
	return accepted, nil
}

// Forget removes all pins of a server: the next list of tools is taken as new.
func (p *Store) Forget(ctx context.Context, server string) error {
	_, err := p.records.Take(ctx, p.key(server))
	if errors.Is(err, vault.ErrNotFound) || errors.Is(err, vault.ErrCorrupt) {
		return nil
	}
	return err
}
