package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config/edit"
)

// sheet is a client's file while its list of servers is edited. Edits splice
// text in and out; comments, order and layout of everything else stay.
type sheet interface {
	// put writes an entry, in the place of one that has its name.
	put(name string, entry object) error
	// text is how an entry is written; paste writes such text back.
	text(name string) (string, bool)
	paste(name, text string) error
	// remove takes an entry out. With the last one goes the list itself, if
	// listToo is set.
	remove(name string, listToo bool) error
	bytes() []byte
}

// errShape says that a file is written in a way that no edit here understands.
var errShape = errors.New("the list of servers is written in a way usher cannot edit")

func openSheet(c client, path string, text []byte) (sheet, error) {
	switch c.format {
	case formatTOML:
		return &tomlSheet{client: c, body: string(text)}, nil
	case formatYAML:
		return &yamlSheet{client: c, body: string(text)}, nil
	}
	doc, err := edit.Parse(path, text)
	if err != nil {
		return nil, err
	}
	return &jsonSheet{client: c, doc: doc}, nil
}

// edited opens a file's text, edits it, and makes sure that nothing but the
// named entries has another meaning than before.
func edited(c client, path string, text []byte, names []string, edit func(sheet) error) ([]byte, error) {
	before, err := parse(path, text, c.format)
	if err != nil {
		return nil, err
	}
	s, err := openSheet(c, path, text)
	if err != nil {
		return nil, err
	}
	if err := edit(s); err != nil {
		return nil, fmt.Errorf("edit %s: %w", path, err)
	}
	after, err := parse(path, s.bytes(), c.format)
	if err != nil || !reflect.DeepEqual(without(before, c.keys[0], names), without(after, c.keys[0], names)) {
		return nil, fmt.Errorf("edit %s: %w", path, errShape)
	}
	return s.bytes(), nil
}

// without is a tree without some entries; a list that is empty then counts as
// none. The tree is changed.
func without(v any, keys, names []string) any {
	if len(keys) > 0 {
		m, ok := v.(map[string]any)
		if !ok {
			return v
		}
		if inner := without(m[keys[0]], keys[1:], names); inner == nil {
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
	client client
	doc    *edit.Document
}

func (s *jsonSheet) path(name string) []string {
	keys := s.client.keys[0]
	return append(keys[:len(keys):len(keys)], name)
}

func (s *jsonSheet) put(name string, entry object) error {
	raw, err := entry.MarshalJSON()
	if err != nil {
		return err
	}
	return s.doc.Set(raw, s.path(name)...)
}

func (s *jsonSheet) text(name string) (string, bool) {
	raw, ok := s.doc.Text(s.path(name)...)
	return string(raw), ok
}

func (s *jsonSheet) paste(name, text string) error {
	return s.doc.Set(json.RawMessage(text), s.path(name)...)
}

func (s *jsonSheet) remove(name string, listToo bool) error {
	if err := s.doc.Delete(s.path(name)...); err != nil {
		return err
	}
	for keys := s.client.keys[0]; listToo && len(keys) > 0 && s.doc.Empty(keys...); keys = keys[:len(keys)-1] {
		if err := s.doc.Delete(keys...); err != nil {
			return err
		}
	}
	return nil
}

func (s *jsonSheet) bytes() []byte { return s.doc.Bytes() }

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

// asIn gives text the line breaks of body.
func asIn(body, text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", lineBreak(body))
}
