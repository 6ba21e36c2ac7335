package pins

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/vault"
)

// Finding is one way in which tools are not what a lock says.
type Finding struct {
	Server, Tool string
	// Kind is changed, new, removed, hidden (invisible text) or damaged (the lock
	// contradicts itself).
	Kind    string
	Changes []Change
	Detail  string
}

// The kinds of findings that are not changes.
const (
	FindingHidden  = "hidden"
	FindingDamaged = "damaged"
)

// String is one line about the finding.
func (f Finding) String() string {
	target := toolName(f.Server, f.Tool)
	if f.Detail != "" {
		return fmt.Sprintf("%s: %s: %s", target, f.Kind, f.Detail)
	}
	return fmt.Sprintf("%s: %s", target, f.Kind)
}

// Verify compares a lock with tools, given as raw definitions by server, and with
// itself; it needs no connection. Servers that current does not have are checked
// for themselves only. No findings means that all is as locked.
func (l *Lock) Verify(current map[string][][]byte) []Finding {
	var out []Finding
	for _, server := range slices.Sorted(maps.Keys(l.Servers)) {
		out = append(out, l.verifySelf(server)...)
		if tools, ok := current[server]; ok {
			out = append(out, l.verifyTools(server, tools)...)
		}
	}
	return out
}

func (l *Lock) verifySelf(server string) []Finding {
	var out []Finding
	tools := l.Servers[server]
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		t := tools[name]
		if t.Definition == nil {
			continue
		}
		d := NewDefinition(t.Definition)
		d.canonicalize()
		switch {
		case d.err != nil:
			out = append(out, Finding{Server: server, Tool: name, Kind: FindingDamaged, Detail: d.err.Error()})
		case d.hash != t.Hash || d.Name != name:
			out = append(out, Finding{Server: server, Tool: name, Kind: FindingDamaged, Detail: "the definition does not have the hash or the name it is locked under"})
		}
		for _, member := range Hidden(t.Definition) {
			out = append(out, Finding{Server: server, Tool: name, Kind: FindingHidden, Detail: "invisible characters in " + member})
		}
	}
	return out
}

func (l *Lock) verifyTools(server string, tools [][]byte) []Finding {
	var out []Finding
	locked := l.Servers[server]
	here := map[string]bool{}
	for _, raw := range tools {
		d := NewDefinition(raw)
		d.canonicalize()
		here[d.Name] = true
		t, ok := locked[d.Name]
		switch {
		case d.err != nil:
			out = append(out, Finding{Server: server, Tool: d.Name, Kind: StateChanged, Detail: d.err.Error()})
		case !ok:
			out = append(out, Finding{Server: server, Tool: d.Name, Kind: StateNew, Detail: "it is not in the lock"})
		case t.Hash != d.hash:
			f := Finding{Server: server, Tool: d.Name, Kind: StateChanged, Detail: strings.Join(changedMembers(t.Definition, d.form), ", ")}
			if t.Definition != nil {
				f.Changes = Compare(t.Definition, d.form)
			}
			out = append(out, f)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(locked)) {
		if !here[name] {
			out = append(out, Finding{Server: server, Tool: name, Kind: StateRemoved, Detail: "the server does not list it any more"})
		}
	}
	return out
}

// all reads all pins of the principal.
func (p *Store) all(ctx context.Context) (map[string]*record, error) {
	recs, err := p.records.List(ctx, vault.KindPin, p.principal)
	if err != nil {
		return nil, fmt.Errorf("list pins: %w", err)
	}
	out := map[string]*record{}
	for _, rec := range recs {
		if out[rec.Name], err = decode(rec.Data); err != nil {
			return nil, fmt.Errorf("pins of %s: %w", rec.Name, err)
		}
	}
	return out, nil
}

// seed fills a record that is empty from a lock, and reports whether it did.
func (l *Lock) seed(server string, rec *record, now time.Time) bool {
	if l == nil || len(rec.Tools) > 0 {
		return false
	}
	for name, t := range l.Servers[server] {
		p := &pin{seen: seen{Hash: t.Hash, At: now, Definition: t.Definition}, First: now}
		if t.Definition != nil {
			p.Bare = digest(jsonx.Delete(canonicalOr(t.Definition), "name"))
		}
		rec.Tools[name] = p
	}
	return len(rec.Tools) > 0
}
