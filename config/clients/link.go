package clients

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
)

// Links writes usher into the files of other clients, and takes it out again.
type Links struct {
	// Dir keeps the files as they were before, and what was done to them.
	Dir string
	// System says where the clients' files are.
	System config.System
}

// The kinds of a [Change].
const (
	LinkCreate  = "create"  // the file is made
	LinkAdd     = "add"     // the entry is added
	LinkUpdate  = "update"  // the entry is there and changes
	LinkKeep    = "keep"    // the entry is there as it should be
	LinkRestore = "restore" // the file becomes what it was before, byte for byte
	LinkDelete  = "delete"  // the file, which a link had made, is deleted
	LinkRemove  = "remove"  // only the entry is taken out: the file has changed since
	LinkForget  = "forget"  // the entry is gone already
)

// Change is what would happen to one file. Nothing does before Apply.
type Change struct {
	Client, Title, File string
	Name                string // of our entry
	Kind                string
	Line                int      // where the file changes, from 1
	Entry               string   // our entry as it is going to stand there
	Was                 string   // for an update: what it said, without credentials
	Moves               []string // entries that are taken out, or put back by an undo
	Notes               []string

	links           Links
	before, after   []byte
	existed, delete bool
	record          *linkRecord // nil: forget what is recorded
	original        []byte      // the file before any link
	made            []string    // directories that the link made
}

// Wanted is an entry to write.
type Wanted struct {
	// Name of the entry.
	Name string
	// Server is the entry itself: a command, or an address.
	Server config.Server
	// File is the one to write. Default: the client's own, see [Links.Survey].
	File string
	// Move are entries of the file to take out.
	Move []string
}

// Link plans to write an entry into a client's file. To write it again is to
// change nothing, or only what is different.
func (l Links) Link(name string, w Wanted) (*Change, error) {
	c, ok := byClient(name)
	if !ok {
		return nil, unknownClient(name)
	}
	if w.File == "" {
		w.File = c.file0(l.System.WithDefaults())
	}
	ch := &Change{Client: c.name, Title: c.title, File: w.File, Name: w.Name, links: l}
	var err error
	if ch.before, ch.existed, err = current(w.File); err != nil {
		return nil, err
	}
	entry, err := ch.entry(c, w)
	if err != nil {
		return nil, err
	}
	if err := ch.setKind(c, w); err != nil {
		return nil, err
	}
	touched := append([]string{w.Name}, w.Move...)
	ch.after, err = syntax.Edit(c.location(), w.File, ch.before, touched, func(s syntax.Sheet) error {
		for _, m := range w.Move {
			if _, there := s.Text(m); !there {
				continue // Claude Code has some for this project alone, elsewhere in the file
			}
			ch.Moves = append(ch.Moves, m)
			if err := s.Remove(m, false); err != nil {
				return err
			}
		}
		old, had := s.Text(w.Name)
		if err := s.Put(w.Name, entry); err != nil {
			return err
		}
		ch.Entry, _ = s.Text(w.Name)
		if had && sameEntry(c, old, ch.Entry) && len(ch.Moves) == 0 {
			ch.Kind = LinkKeep
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if ch.Kind == LinkKeep {
		ch.after = ch.before
	}
	ch.Line = firstDifference(ch.before, ch.after)
	return ch, ch.plan(c)
}

// entry is our server in the client's words.
func (ch *Change) entry(c client, w Wanted) (syntax.Object, error) {
	if c.name == "claude" && w.Server.URL != "" {
		return nil, fmt.Errorf("%s starts programs and reaches no addresses; link it without --http", c.title)
	}
	x := &exporting{client: c, server: w.Name}
	s := w.Server
	s.Name = w.Name
	entry := x.entry(s.WithDefaults())
	ch.Notes = x.notes
	if entry == nil {
		return nil, fmt.Errorf("%s has no words for such an entry", c.title)
	}
	return entry, nil
}

// setKind finds out what is there already. An entry of that name that is not
// ours is an error.
func (ch *Change) setKind(c client, w Wanted) error {
	ch.Kind = LinkAdd
	if !ch.existed {
		ch.Kind = LinkCreate
		return nil
	}
	tree, err := syntax.Parse(w.File, ch.before, c.format)
	if err != nil {
		return err
	}
	old, ok := entryIn(c, ch.links.System, tree, w.Name)
	if !ok {
		return nil
	}
	record, _, err := ch.links.load(c.name, w.File, w.Name)
	if err != nil {
		return err
	}
	sameAddress := old.URL != "" && old.URL == w.Server.URL
	if record == nil && !isUsher(old.Command, old.Args) && !sameAddress {
		return fmt.Errorf("%s has an entry %q that is not usher's; choose another name with --name", w.File, w.Name)
	}
	ch.Kind, ch.Was = LinkUpdate, said(old)
	return nil
}

// plan decides what is recorded: the file as it was before the first link.
func (ch *Change) plan(c client) error {
	record, original, err := ch.links.load(ch.Client, ch.File, ch.Name)
	if err != nil {
		return err
	}
	r := linkRecord{Client: ch.Client, File: ch.File, Name: ch.Name, Existed: ch.existed, After: hashOf(ch.after), Moved: ch.Moves}
	ch.record, ch.original = &r, ch.before
	switch {
	case record != nil && record.After == hashOf(ch.before):
		r.Existed, r.Made, ch.original = record.Existed, record.Made, original
		for _, m := range record.Moved {
			if !slices.Contains(r.Moved, m) {
				r.Moved = append(r.Moved, m)
			}
		}
	case ch.Kind == LinkUpdate || ch.Kind == LinkKeep:
		// Somebody changed the file since: what to go back to is this file without
		// the entry.
		ch.original, err = syntax.Edit(c.location(), ch.File, ch.before, []string{ch.Name}, func(s syntax.Sheet) error { return s.Remove(ch.Name, false) })
	case !ch.existed:
		r.Made = missingDirs(ch.File)
	}
	return err
}

// Apply writes the file. What is needed to undo it is kept first.
func (ch *Change) Apply() error {
	l := ch.links
	if ch.record != nil {
		if err := l.save(*ch.record, ch.original); err != nil {
			return fmt.Errorf("keep a backup of %s: %w", ch.File, err)
		}
		if bytes.Equal(ch.before, ch.after) && ch.existed {
			return nil
		}
		return replaceFile(ch.File, ch.before, ch.existed, ch.after)
	}
	return ch.undo()
}

// Backup is where the file as it was before is kept, "" when it is not.
func (ch *Change) Backup() string {
	if ch.record == nil || !ch.record.Existed {
		return ""
	}
	return ch.links.path(ch.Client, ch.File, ch.Name) + ".before"
}

// Writes reports whether Apply changes the client's file.
func (ch *Change) Writes() bool { return ch.Kind != LinkKeep && ch.Kind != LinkForget }

// entryIn reads one entry of a parsed file in our terms.
func entryIn(c client, sys config.System, tree map[string]any, name string) (config.Server, bool) {
	list, _ := syntax.Lookup(tree, c.keys[0])
	keys, ok := list[name].(map[string]any)
	if !ok {
		return config.Server{}, list[name] != nil
	}
	r := &reading{client: c, sys: sys.WithDefaults(), tree: tree, found: &Found{}, taken: map[string]bool{}}
	e := &entry{reading: r, name: name, keys: keys, used: map[string]bool{}}
	c.read(e)
	return e.s, true
}

// said is a server in one line, without credentials.
func said(s config.Server) string {
	s = s.Masked()
	if s.URL != "" {
		return s.URL
	}
	return strings.Join(append([]string{s.Command}, s.Args...), " ")
}

// sameEntry compares the text of two entries by what they mean.
func sameEntry(c client, a, b string) bool {
	if c.format != syntax.JSON {
		return strings.TrimSpace(syntax.AsIn("", a)) == strings.TrimSpace(syntax.AsIn("", b))
	}
	x, errX := syntax.Parse("", []byte(a), syntax.JSON)
	y, errY := syntax.Parse("", []byte(b), syntax.JSON)
	return errX == nil && errY == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// firstDifference is the line of b in which it begins to say something else than
// a; 0 when it does not.
func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return 0
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n < len(b) && bytes.IndexByte([]byte(", \t\r\n"), b[n]) >= 0 {
		n++ // a comma behind the entry before ours
	}
	return bytes.Count(b[:n], []byte("\n")) + 1
}

// file0 is the file of a client to write: the first that is there, else the
// first whose directory is, else the first.
func (c client) file0(sys config.System) string {
	paths := c.user(places{sys})
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	for _, path := range paths {
		if _, err := os.Stat(filepath.Dir(path)); err == nil {
			return path
		}
	}
	return paths[0]
}
