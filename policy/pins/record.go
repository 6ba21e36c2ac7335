package pins

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
)

// record is what is kept about the tools of one server (and account): one
// record, so that a list of tools costs one write at most. It is stored as a line
// of JSON with the hashes, which is all that is mostly needed, and the definitions
// one after the other behind it.
type record struct {
	Version int             `json:"version"`
	Tools   map[string]*pin `json:"tools"`
}

// pin is one tool as it was first seen or last accepted.
type pin struct {
	seen
	// First is when the tool was first seen.
	First time.Time `json:"first"`
	// New: it came after the server had been pinned, and nobody has looked yet.
	New bool `json:"new,omitempty"`
	// From is the tool it was renamed from, as far as equal definitions tell.
	From string `json:"from,omitempty"`
	// Gone is when the server stopped listing it. The pin stays: what comes back
	// under the name must still be the same.
	Gone *time.Time `json:"gone,omitempty"`
	// Pending is the changed definition that waits for a person.
	Pending *seen `json:"pending,omitempty"`
}

// seen is a definition as it was found.
type seen struct {
	Hash       string          `json:"hash"`
	Bare       string          `json:"bare"`
	Raw        string          `json:"raw"`
	At         time.Time       `json:"at"`
	Size       int             `json:"size,omitempty"` // of the definition behind the header
	Definition json.RawMessage `json:"-"`              // canonical; nil when too large
}

const (
	pinVersion    = 1
	maxKept       = 64 << 10 // of one definition; larger ones are only hashed
	maxPinnedText = 10 << 20 // of one record
)

func decode(data []byte) (*record, error) {
	rec := &record{Version: pinVersion, Tools: map[string]*pin{}}
	if data == nil {
		return rec, nil
	}
	head, body, _ := bytes.Cut(data, []byte{'\n'})
	if err := json.Unmarshal(head, rec); err != nil {
		return nil, fmt.Errorf("read pins: %w", err)
	}
	if rec.Version > pinVersion {
		return nil, fmt.Errorf("read pins: written by a newer usher (version %d)", rec.Version)
	}
	for name, s := range rec.texts() {
		if s == nil || s.Size < 0 || s.Size > len(body) {
			return nil, fmt.Errorf("read pins: the pin of %q is cut off", name)
		}
		if s.Size > 0 {
			s.Definition, body = json.RawMessage(body[:s.Size:s.Size]), body[s.Size:]
		}
	}
	return rec, nil
}

// texts yields everything that may have a definition, in the order of the body.
func (r *record) texts() iter.Seq2[string, *seen] {
	return func(yield func(string, *seen) bool) {
		for _, name := range slices.Sorted(maps.Keys(r.Tools)) {
			p := r.Tools[name]
			if p == nil {
				yield(name, nil)
				return
			}
			if !yield(name, &p.seen) || p.Pending != nil && !yield(name, p.Pending) {
				return
			}
		}
	}
}

func (r *record) encode() ([]byte, error) {
	total := 0
	for _, s := range r.texts() {
		total += len(s.Definition)
	}
	var body []byte
	for _, s := range r.texts() {
		if total > maxPinnedText {
			s.Definition = nil // the hashes still tell, only the diff is lost
		}
		s.Size = len(s.Definition)
		body = append(body, s.Definition...)
	}
	head, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write pins: %w", err)
	}
	return append(append(head, '\n'), body...), nil
}

// Observation is how one listed tool compares with its pin.
type Observation struct {
	Changed []string // members that differ from the pin; nil when it is the same
	Reason  string   // why it cannot be pinned
	Hidden  []string // members with invisible text
}

// Blocks reports whether the tool is not the one that was pinned.
func (f *Observation) Blocks() bool { return f.Changed != nil || f.Reason != "" }

// Note is something about a server's tools that a person should hear of once.
type Note struct {
	Tool string
	Kind string // one of the Note constants
	From string // the old name of a renamed tool
}

// The kinds of notes.
const (
	NoteNew     = "new"
	NoteRenamed = "renamed"
	NoteChanged = "changed"
	NoteRemoved = "removed"
	NoteBack    = "back"
)

// observe compares a list of tools with the pins, pins what is new, and notes
// what changed. It says whether the record has to be written. It ends early with ctx,
// and the record must not be written then.
func (r *record) observe(ctx context.Context, tools []Definition, now time.Time) (found map[string]*Observation, notes []Note, write bool, err error) {
	first := len(r.Tools) == 0
	found = make(map[string]*Observation, len(tools))
	here := make(map[string]bool, len(tools))
	for i := range tools {
		here[tools[i].Name] = true
	}
	left := r.left(here)
	for i := range tools {
		if ctx.Err() != nil {
			return nil, nil, false, context.Cause(ctx)
		}
		d := &tools[i]
		if d.Name == "" {
			continue // it cannot be called
		}
		f := found[d.Name]
		if f == nil {
			f = &Observation{Hidden: Hidden(d.Raw)}
			found[d.Name] = f
		}
		p := r.Tools[d.Name]
		if p == nil {
			p = r.pinNew(d, f, left, first, now)
			if p == nil {
				continue
			}
			write = true
			if !first {
				notes = append(notes, Note{Tool: d.Name, Kind: noteOfNew(p), From: p.From})
			}
			continue
		}
		if p.Gone != nil {
			p.Gone, write = nil, true
			notes = append(notes, Note{Tool: d.Name, Kind: NoteBack})
		}
		if r.compare(p, d, f, now) {
			write = true
			notes = append(notes, Note{Tool: d.Name, Kind: NoteChanged})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Tools)) {
		p := r.Tools[name]
		if !here[name] && p.Gone == nil {
			p.Gone, write = &now, true
			notes = append(notes, Note{Tool: name, Kind: NoteRemoved})
		}
		if f := found[name]; f != nil && !f.Blocks() && p.Pending != nil {
			p.Pending, write = nil, true // it is again what was pinned
		}
	}
	return found, notes, write, nil
}

func noteOfNew(p *pin) string {
	if p.From != "" {
		return NoteRenamed
	}
	return NoteNew
}

// pinNew pins a tool that was never seen. One without a canonical form cannot be
// pinned: two readers would not agree on what it says.
// left has the names that earlier tools had, by what they were but for the name.
func (r *record) pinNew(d *Definition, f *Observation, left map[string]string, first bool, now time.Time) *pin {
	if d.canonicalize(); d.err != nil {
		f.Reason = "its definition can be read in more than one way: " + d.err.Error()
		return nil
	}
	if len(r.Tools) >= limit.PinnedTools {
		f.Reason = fmt.Sprintf("the server has had %d other tools, and no more are pinned", len(r.Tools))
		return nil
	}
	p := &pin{seen: d.seen(now), First: now, New: !first, From: left[d.bare]}
	r.Tools[d.Name] = p
	return p
}

// left returns the first name, of tools that are not here, for each definition
// without its name.
func (r *record) left(here map[string]bool) map[string]string {
	out := map[string]string{}
	for name, p := range r.Tools {
		if old, ok := out[p.Bare]; !here[name] && (!ok || name < old) {
			out[p.Bare] = name
		}
	}
	return out
}

func (d *Definition) seen(now time.Time) seen {
	s := seen{Hash: d.hash, Bare: d.bare, Raw: d.sum, At: now}
	if len(d.form) <= maxKept {
		s.Definition = d.form
	}
	return s
}

// compare fills f and reports whether the change is news.
func (r *record) compare(p *pin, d *Definition, f *Observation, now time.Time) bool {
	if p.Raw == d.sum {
		return false
	}
	if d.canonicalize(); d.err != nil {
		f.Reason = "its definition can be read in more than one way: " + d.err.Error()
		return false
	}
	if p.Hash == d.hash {
		return false
	}
	f.Changed = changedMembers(p.Definition, d.form)
	if p.Pending != nil && p.Pending.Hash == d.hash {
		return false
	}
	s := d.seen(now)
	p.Pending = &s
	return true
}

// changedMembers names the members in which two definitions differ. It is never
// empty, since the hashes differ.
func changedMembers(old, now []byte) []string {
	if old == nil {
		return []string{"definition"}
	}
	before := members(old)
	var out []string
	for m := jsonx.Object(now); m.Next(); {
		name := string(m.Key)
		if was, ok := before[name]; !ok || !bytes.Equal(canonicalOr(was), canonicalOr(m.Value)) {
			out = append(out, name)
		}
		delete(before, name)
	}
	out = slices.AppendSeq(out, maps.Keys(before))
	if out == nil {
		return []string{"definition"}
	}
	slices.Sort(out)
	return out
}

func members(obj []byte) map[string][]byte {
	out := map[string][]byte{}
	for m := jsonx.Object(obj); m.Next(); {
		out[string(m.Key)] = m.Value
	}
	return out
}

func canonicalOr(raw []byte) []byte {
	if c, err := jsonx.Canonical(raw); err == nil {
		return c
	}
	return raw
}

// accept takes the pending definition of a tool as its pin, and reports whether
// there was something to accept.
func (p *pin) accept() bool {
	news := p.New || p.From != ""
	p.New, p.From = false, ""
	if p.Pending == nil {
		return news
	}
	p.seen, p.Pending = *p.Pending, nil
	return true
}

// startFrom takes over the pins of the listed tools from base, and reports whether
// there were any.
func (r *record) startFrom(base *record, tools []Definition) bool {
	for i := range tools {
		name := tools[i].Name
		p := base.Tools[name]
		if p == nil || r.Tools[name] != nil {
			continue
		}
		own := *p
		own.Pending, own.Gone = nil, nil
		r.Tools[name] = &own
	}
	return len(r.Tools) > 0
}
