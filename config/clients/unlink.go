package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
)

// Unlink plans to undo every link of a client: files that nobody has touched
// since become what they were, byte for byte; of others only our entry is taken
// out, and what was moved away comes back. No change means that none is there.
func (l Links) Unlink(name string) ([]*Change, error) {
	c, ok := byClient(name)
	if !ok {
		return nil, unknownClient(name)
	}
	var out []*Change
	for _, r := range l.records(c.name) {
		ch, err := l.undoing(c, r)
		if err != nil {
			return nil, err
		}
		out = append(out, ch)
	}
	linked, err := l.linked(c)
	if err != nil {
		return nil, err
	}
	for _, at := range linked {
		if slices.ContainsFunc(out, func(ch *Change) bool { return ch.File == at.File && ch.Name == at.Name }) {
			continue
		}
		ch, err := l.undoing(c, linkRecord{Client: c.name, File: at.File, Name: at.Name, Existed: true})
		if err != nil {
			return nil, err
		}
		out = append(out, ch)
	}
	return out, nil
}

// undoing plans to undo one link.
func (l Links) undoing(c client, r linkRecord) (*Change, error) {
	ch := &Change{Client: c.name, Title: c.title, File: r.File, Name: r.Name, links: l}
	var err error
	if ch.before, ch.existed, err = current(r.File); err != nil {
		return nil, err
	}
	_, original, err := l.load(c.name, r.File, r.Name)
	if err != nil {
		return nil, err
	}
	switch {
	case !ch.existed:
		ch.Kind = LinkForget
	case r.After == hashOf(ch.before) && r.Existed:
		ch.Kind, ch.after, ch.Moves = LinkRestore, original, r.Moved
	case r.After == hashOf(ch.before):
		ch.Kind, ch.delete = LinkDelete, true
	default:
		err = ch.takeOut(c, r, original)
	}
	ch.made = r.Made
	ch.Line = firstDifference(ch.after, ch.before)
	return ch, err
}

// takeOut removes our entry alone and puts back what was moved.
func (ch *Change) takeOut(c client, r linkRecord, original []byte) error {
	ch.Kind = LinkForget
	tree, err := syntax.Parse(ch.File, ch.before, c.format)
	if err != nil {
		return fmt.Errorf("take the entry %q out: %w", ch.Name, err)
	}
	old, there := entryIn(c, ch.links.System, tree, ch.Name)
	ours := there && (isUsher(old.Command, old.Args) || old.URL != "")
	if there && !ours {
		ch.Notes = append(ch.Notes, fmt.Sprintf("the entry %q no longer starts usher and is left alone", ch.Name))
	}
	back, err := syntax.Open(c.location(), ch.File, original)
	if err != nil {
		return err
	}
	touched := append([]string{ch.Name}, r.Moved...)
	ch.after, err = syntax.Edit(c.location(), ch.File, ch.before, touched, func(s syntax.Sheet) error {
		if ours {
			ch.Kind = LinkRemove
			if err := s.Remove(ch.Name, !listIn(c, ch.File, original)); err != nil {
				return err
			}
		}
		for _, m := range r.Moved {
			text, was := back.Text(m)
			if _, there := s.Text(m); there || !was {
				continue
			}
			ch.Kind = LinkRemove
			ch.Moves = append(ch.Moves, m)
			if err := s.Paste(m, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if ch.Kind == LinkRemove && !r.Existed && nothingIn(c, ch.File, ch.after) {
		ch.Kind, ch.delete = LinkDelete, true
	}
	return nil
}

// listIn reports a file that has a list of servers, be it empty. Without a
// backup it is believed to.
func listIn(c client, path string, text []byte) bool {
	tree, err := syntax.Parse(path, text, c.format)
	if err != nil || text == nil {
		return true
	}
	_, ok := syntax.Lookup(tree, c.keys[0])
	return ok
}

func nothingIn(c client, path string, text []byte) bool {
	tree, err := syntax.Parse(path, text, c.format)
	return err == nil && syntax.Without(tree, c.keys[0], nil) == nil
}

// undo does what Unlink planned, and forgets the link last.
func (ch *Change) undo() error {
	switch {
	case ch.Kind == LinkForget:
	case ch.delete:
		if now, _, err := current(ch.File); err != nil || !bytes.Equal(now, ch.before) {
			return errors.Join(err, fmt.Errorf("%s was changed by somebody else at the same moment; try again", ch.File))
		}
		if err := os.Remove(ch.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, dir := range ch.made {
			_ = os.Remove(dir) // unless others are in it
		}
	default:
		if err := replaceFile(ch.File, ch.before, ch.existed, ch.after); err != nil {
			return err
		}
	}
	return ch.links.forget(ch.Client, ch.File, ch.Name)
}

// Covered lists the entries of a file, by the names they have there, that stand
// for one of our servers: the same server with the same credentials.
func Covered(f Found, ours []config.Server) []string {
	var out []string
	for _, im := range f.Servers {
		id, key := identity(im.Server), credentials(im.Server)
		if slices.ContainsFunc(ours, func(s config.Server) bool {
			return s.Problem == nil && !s.Disabled && identity(s) == id && credentials(s) == key
		}) {
			out = append(out, im.Original)
		}
	}
	return out
}
