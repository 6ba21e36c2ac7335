package syntax

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config/edit"
)

// Location is where a client's file keeps its list of servers.
type Location struct {
	Format Format
	Keys   []string // the path of keys that leads to the list
	List   bool     // the servers are a list of objects with a name
}

// Nest puts the servers under the keys of the list.
func (at Location) Nest(list Object) Object {
	var value any = list
	if list == nil {
		value = Object{}
	}
	if at.List {
		var items []Object
		for _, p := range list {
			items = append(items, named(p.Key, p.Value.(Object)))
		}
		value = items
	}
	for i := len(at.Keys) - 1; i >= 0; i-- {
		value = Object{{at.Keys[i], value}}
	}
	return value.(Object)
}

// named is an entry of a list, which says its name itself.
func named(name string, entry Object) Object { return append(Object{{"name", name}}, entry...) }

// Sheet is a client's file while its list of servers is edited. Edits splice
// text in and out; comments, order and layout of everything else stay.
type Sheet interface {
	// Put writes an entry, in the place of one that has its name.
	Put(name string, entry Object) error
	// Text is how an entry is written; Paste writes such text back.
	Text(name string) (string, bool)
	Paste(name, text string) error
	// Remove takes an entry out. With the last one goes the list itself, if
	// listToo is set.
	Remove(name string, listToo bool) error
	// Bytes is the text of the file as edited so far.
	Bytes() []byte
}

// errShape says that a file is written in a way that no edit here understands.
var errShape = errors.New("the list of servers is written in a way usher cannot edit")

// Open returns the text of a file for editing.
func Open(at Location, path string, text []byte) (Sheet, error) {
	switch at.Format {
	case TOML:
		return &tomlSheet{at: at, body: string(text)}, nil
	case YAML:
		return &yamlSheet{at: at, body: string(text)}, nil
	}
	doc, err := edit.Parse(path, text)
	if err != nil {
		return nil, err
	}
	return &jsonSheet{at: at, doc: doc}, nil
}

// Edit opens a file's text, edits it, and makes sure that nothing but the
// named entries has another meaning than before.
func Edit(at Location, path string, text []byte, names []string, edit func(Sheet) error) ([]byte, error) {
	before, err := Parse(path, text, at.Format)
	if err != nil {
		return nil, err
	}
	s, err := Open(at, path, text)
	if err != nil {
		return nil, err
	}
	if err := edit(s); err != nil {
		return nil, fmt.Errorf("edit %s: %w", path, err)
	}
	after, err := Parse(path, s.Bytes(), at.Format)
	if err != nil || !reflect.DeepEqual(Without(before, at.Keys, names), Without(after, at.Keys, names)) {
		return nil, fmt.Errorf("edit %s: %w", path, errShape)
	}
	return s.Bytes(), nil
}

// Without is a tree without some entries; a list that is empty then counts as
// none. The tree is changed.
func Without(v any, keys, names []string) any {
	if len(keys) > 0 {
		m, ok := v.(map[string]any)
		if !ok {
			return v
		}
		if inner := Without(m[keys[0]], keys[1:], names); inner == nil {
			delete(m, keys[0])
		} else {
			m[keys[0]] = inner
		}
		return emptyAsNil(m, len(m))
	}
	switch t := v.(type) {
	case map[string]any:
		for _, name := range names {
			delete(t, name)
		}
		return emptyAsNil(t, len(t))
	case []any:
		var kept []any
		for _, e := range t {
			m, _ := e.(map[string]any)
			name, _ := m["name"].(string)
			if !slices.Contains(names, name) {
				kept = append(kept, e)
			}
		}
		return emptyAsNil(kept, len(kept))
	}
	return v
}

func emptyAsNil(v any, n int) any {
	if n == 0 {
		return nil
	}
	return v
}

// jsonSheet is JSON, with comments or without.
type jsonSheet struct {
	at  Location
	doc *edit.Document
}

func (s *jsonSheet) path(name string) []string {
	keys := s.at.Keys
	return append(keys[:len(keys):len(keys)], name)
}

func (s *jsonSheet) Put(name string, entry Object) error {
	raw, err := entry.MarshalJSON()
	if err != nil {
		return err
	}
	return s.doc.Set(raw, s.path(name)...)
}

func (s *jsonSheet) Text(name string) (string, bool) {
	raw, ok := s.doc.Text(s.path(name)...)
	return string(raw), ok
}

func (s *jsonSheet) Paste(name, text string) error {
	return s.doc.Set(json.RawMessage(text), s.path(name)...)
}

func (s *jsonSheet) Remove(name string, listToo bool) error {
	if err := s.doc.Delete(s.path(name)...); err != nil {
		return err
	}
	for keys := s.at.Keys; listToo && len(keys) > 0 && s.doc.Empty(keys...); keys = keys[:len(keys)-1] {
		if err := s.doc.Delete(keys...); err != nil {
			return err
		}
	}
	return nil
}

func (s *jsonSheet) Bytes() []byte { return s.doc.Bytes() }

// lineBreak is how the lines of a text end.
func lineBreak(text string) string {
	if strings.Contains(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// ended is a text whose last line is complete.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + lineBreak(text)
}

// AsIn gives text the line breaks of body.
func AsIn(body, text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", lineBreak(body))
}
