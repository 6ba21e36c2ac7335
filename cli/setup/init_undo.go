package setup

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients"
	"github.com/usher-mcp/usher/config/edit"
)

// initRecord is what usher init did, so that it can be undone. The user's file as it
// was lies beside it.
type initRecord struct {
	File    string            `json:"file"`
	Existed bool              `json:"existed"`
	After   string            `json:"after"`   // hash of the file as it was left
	Servers map[string]string `json:"servers"` // what was added: hash of each entry
	Clients []string          `json:"clients"` // that were linked
}

func sum(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

func initDir(f *cmdutil.Factory) (string, error) {
	dirs, err := config.FindDirs(f.IO.System)
	return filepath.Join(dirs.State, "init"), err
}

// readInit returns what is recorded; nothing recorded is an empty record.
func readInit(f *cmdutil.Factory) (*initRecord, error) {
	dir, err := initDir(f)
	if err != nil {
		return nil, err
	}
	r := &initRecord{Servers: map[string]string{}}
	raw, err := os.ReadFile(filepath.Join(dir, "record.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, r)
	}
	if err != nil {
		return nil, cmdutil.WithHint(fmt.Errorf("read what usher init did: %w", err), "remove %s, then undo by hand: usher unlink --all, usher remove NAME", dir)
	}
	return r, nil
}

func (s *firstRun) saveRecord() error {
	dir, err := initDir(s.Factory)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(s.record)
	if err != nil {
		return err
	}
	return edit.WriteFile(filepath.Join(dir, "record.json"), raw, nil)
}

// keepBefore keeps the user's file as it is before servers are added. If init ran
// before and nobody has touched the file since, what it was then is kept.
func (s *firstRun) keepBefore() error {
	now, err := os.ReadFile(s.target.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.record.After == sum(now) && s.record.File == s.target.Path {
		return nil
	}
	dir, dirErr := initDir(s.Factory)
	if dirErr != nil {
		return dirErr
	}
	s.record.File, s.record.Existed = s.target.Path, err == nil
	s.record.After, s.record.Servers = "", map[string]string{}
	if err := edit.WriteFile(filepath.Join(dir, "before"), now, nil); err != nil {
		return err
	}
	return s.saveRecord()
}

// keepAfter notes what was added.
func (s *firstRun) keepAfter(added []clients.Planned) error {
	now, err := os.ReadFile(s.target.Path)
	if err != nil {
		return err
	}
	s.record.After = sum(now)
	for _, n := range added {
		entry, err := n.Server.Entry()
		if err != nil {
			return err
		}
		s.record.Servers[n.Server.Name] = sum(entry)
	}
	return s.saveRecord()
}

// keepLinks notes the clients before they are linked. What is moved out of them is
// imported, too.
func (s *firstRun) keepLinks(w *linking) error {
	if w.imports != nil && len(w.imports.Add) > 0 {
		if err := s.keepBefore(); err != nil {
			return err
		}
		if err := w.imports.Apply(); err != nil {
			return err
		}
		if err := s.keepAfter(w.imports.Add); err != nil {
			return err
		}
		w.imports = nil
	}
	for _, ch := range w.changes {
		if ch.Writes() && !slices.Contains(s.record.Clients, ch.Client) {
			s.record.Clients = append(s.record.Clients, ch.Client)
		}
	}
	return s.saveRecord()
}

// initUndo takes back what init did: first the clients, then the servers.
func initUndo(ctx context.Context, f *cmdutil.Factory, o *initOptions) error {
	r, err := readInit(f)
	if err != nil {
		return err
	}
	if r.File == "" && len(r.Clients) == 0 {
		f.Note("nothing to undo: usher init has done nothing here")
		return nil
	}
	w := &linking{undo: true}
	if len(r.Clients) > 0 {
		if w, err = planUnlinks(f, &linkOptions{clients: r.Clients}); err != nil {
			return err
		}
	}
	back, err := planRestore(f, r)
	if err != nil {
		return err
	}
	if o.json {
		return undoQuietly(f, w, back, o.yes)
	}
	showLinks(f, w)
	back.show(f)
	if o.rehearse {
		return reportEach(f, w.failed)
	}
	if !o.yes {
		agreed, err := f.Confirm(ctx, "undo this?")
		if err != nil {
			return cmdutil.WithHint(err, "%s", cmdutil.AgreeHint(f, "look at what is shown, then: usher init --undo --yes"))
		}
		if !agreed {
			f.Note("nothing was undone")
			return nil
		}
	}
	if err := applyLinks(f, w); err != nil {
		return err
	}
	return back.apply(f)
}

// restoring is what becomes of the user's own file.
type restoring struct {
	file    string
	whole   bool // it becomes what it was
	existed bool
	before  []byte
	remove  []string // servers to take out, when it has changed since
	kept    []string // servers that were imported and changed since
}

func planRestore(f *cmdutil.Factory, r *initRecord) (*restoring, error) {
	b := &restoring{file: r.File, existed: r.Existed}
	if r.File == "" {
		return b, nil
	}
	now, err := os.ReadFile(r.File)
	if errors.Is(err, fs.ErrNotExist) {
		return &restoring{}, nil
	}
	if err != nil {
		return nil, err
	}
	dir, err := initDir(f)
	if err != nil {
		return nil, err
	}
	if b.before, err = os.ReadFile(filepath.Join(dir, "before")); err != nil {
		return nil, fmt.Errorf("the backup of %s: %w", r.File, err)
	}
	if b.whole = sum(now) == r.After; b.whole {
		return b, nil
	}
	cfg, err := cmdutil.ReadTarget(f, cmdutil.Target{Path: r.File, Layer: config.LayerUser})
	if err != nil {
		return nil, err
	}
	for _, s := range cfg.Servers {
		was, ours := r.Servers[s.Name]
		if !ours {
			continue
		}
		if entry, err := s.Entry(); err == nil && sum(entry) == was {
			b.remove = append(b.remove, s.Name)
		} else {
			b.kept = append(b.kept, s.Name)
		}
	}
	return b, nil
}

func (b *restoring) show(f *cmdutil.Factory) {
	switch {
	case b.file == "":
		return
	case b.whole && b.existed:
		fmt.Fprintf(f.IO.Out, "%s\n  becomes what it was before, byte for byte\n", cmdutil.Clean(f.Short(b.file)))
	case b.whole:
		fmt.Fprintf(f.IO.Out, "%s\n  deleted (created by init)\n", cmdutil.Clean(f.Short(b.file)))
	default:
		fmt.Fprintf(f.IO.Out, "%s\n  has changed since: only what init added is taken out\n", cmdutil.Clean(f.Short(b.file)))
		for _, name := range b.remove {
			fmt.Fprintf(f.IO.Out, "- %s\n", cmdutil.Clean(name))
		}
		if len(b.kept) > 0 {
			f.Note("  changed by you, and kept: %s", strings.Join(b.kept, ", "))
		}
	}
}

// apply restores the file, and forgets what init did.
func (b *restoring) apply(f *cmdutil.Factory) error {
	var err error
	switch {
	case b.file == "":
	case b.whole && b.existed:
		err = edit.WriteFile(b.file, b.before, nil)
	case b.whole:
		err = os.Remove(b.file)
	case len(b.remove) > 0:
		_, err = edit.Update(b.file, func(d *edit.Document) error {
			for _, name := range b.remove {
				if err := d.Remove(name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	dir, err := initDir(f)
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
