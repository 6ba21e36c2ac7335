package clients

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config/clients/syntax"
	"github.com/usher-mcp/usher/config/edit"
)

// linkRecord is what has to be known to undo a link. The file as it was before
// lies beside it.
type linkRecord struct {
	Client  string   `json:"client"`
	File    string   `json:"file"`
	Name    string   `json:"name"` // of our entry
	Existed bool     `json:"existed"`
	After   string   `json:"after"`           // hash of the file as it was left
	Moved   []string `json:"moved,omitempty"` // entries that were taken out
	Made    []string `json:"made,omitempty"`  // directories that were made, the deepest first
}

func hashOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// path is where the record of an entry lies, without its ending.
func (l Links) path(client, file, name string) string {
	return filepath.Join(l.Dir, client+"-"+hashOf([]byte(file + "\x00" + name))[:16])
}

// load returns the record of an entry and the file before it, if there are any.
func (l Links) load(client, file, name string) (*linkRecord, []byte, error) {
	at := l.path(client, file, name)
	raw, err := os.ReadFile(at + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var r linkRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, nil, fmt.Errorf("%s.json is damaged: %w; remove it, and unlink takes out the entry only", at, err)
	}
	before, err := os.ReadFile(at + ".before")
	if err != nil && r.Existed {
		return nil, nil, fmt.Errorf("the backup of %s: %w; remove %s.json, and unlink takes out the entry only", r.File, err, at)
	}
	return &r, before, nil
}

// save writes a record and the file before it. The record comes last: it is
// what says that there is a backup.
func (l Links) save(r linkRecord, before []byte) error {
	at := l.path(r.Client, r.File, r.Name)
	if err := edit.WriteFile(at+".before", before, nil); err != nil {
		return err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return edit.WriteFile(at+".json", raw, nil)
}

func (l Links) forget(client, file, name string) error {
	at := l.path(client, file, name)
	var errs []error
	for _, path := range []string{at + ".json", at + ".before"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	_ = os.Remove(l.Dir) // unless others are in it
	return errors.Join(errs...)
}

// records lists what is recorded of a client, in a fixed order. A record that
// cannot be read is left out: the entry it speaks of is found in the file.
func (l Links) records(client string) []linkRecord {
	paths, _ := filepath.Glob(filepath.Join(l.Dir, client+"-*.json")) // the pattern is valid
	var out []linkRecord
	for _, path := range paths {
		var r linkRecord
		if raw, err := os.ReadFile(path); err == nil && json.Unmarshal(raw, &r) == nil && r.Client == client {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b linkRecord) int { return strings.Compare(a.File+"\x00"+a.Name, b.File+"\x00"+b.Name) })
	return out
}

// current reads a client's file; one that is not there is empty.
func current(path string) (text []byte, exists bool, err error) {
	text, err = syntax.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return text, err == nil, err
}

// replaceFile puts text into a file, unless somebody changed it since it was read.
func replaceFile(path string, before []byte, existed bool, text []byte) error {
	err := edit.WriteFile(path, text, func() bool {
		now, exists, err := current(path)
		return err == nil && exists == existed && bytes.Equal(now, before)
	})
	if errors.Is(err, edit.ErrRaced) {
		return fmt.Errorf("%s was changed by somebody else at the same moment and is left as it is; try again, if need be with its program closed", path)
	}
	return err
}

// missingDirs lists the directories that writing a file would make, the
// deepest first.
func missingDirs(path string) []string {
	var out []string
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return out
		}
		out = append(out, dir)
	}
}
