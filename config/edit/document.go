package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/jsonc"
	"github.com/usher-mcp/usher/internal/suggest"
)

// ErrExists says that a server of that name is in the file already.
var ErrExists = errors.New("already exists")

// ErrNoServer says that no server of that name is in the file.
var ErrNoServer = errors.New("no such server in the file")

// Document is the text of a configuration file that is being edited. Edits
// splice text in and out and leave every other byte as it was, comments,
// order and indentation included.
type Document struct {
	file string
	bom  bool
	text sourceText
	root hujson.Value
}

// Parse reads text for editing. Text that does not parse is refused,
// so that an edit never makes things worse; empty text is an empty object.
func Parse(file string, text []byte) (*Document, error) {
	d := &Document{file: file}
	text, d.bom = bytes.CutPrefix(text, []byte(jsonc.BOM))
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{\n}\n")
	}
	if err := d.set(text); err != nil {
		return nil, err
	}
	if d.root.Value.Kind() != '{' {
		return nil, d.source().ErrorAt(d.root.StartOffset, "the file must hold an object")
	}
	return d, nil
}

// Bytes returns the text as edited so far.
func (d *Document) Bytes() []byte {
	if d.bom {
		return append([]byte(jsonc.BOM), d.text...)
	}
	return bytes.Clone(d.text)
}

func (d *Document) source() *jsonc.Source { return &jsonc.Source{File: d.file, Text: d.text} }

// set takes new text if it parses.
func (d *Document) set(text []byte) error {
	root, err := jsonc.Parse(&jsonc.Source{File: d.file, Text: text})
	if err != nil {
		return err
	}
	d.text, d.root = text, root
	return nil
}

// Servers lists the names in the file, in its order.
func (d *Document) Servers() []string {
	var out []string
	for _, key := range []string{"mcpServers", "servers"} {
		if obj, ok := d.object(key); ok {
			for _, m := range obj.Members {
				out = append(out, jsonc.MemberKey(m))
			}
		}
	}
	return out
}

// Add writes a server. A server of that name is an error (ErrExists) unless
// replace is set; then only the keys that differ are touched, so that
// comments inside the entry survive.
func (d *Document) Add(s config.Server, replace bool) error {
	if err := config.CheckName(s.Name); err != nil {
		return err
	}
	entry, err := s.Entry()
	if err != nil {
		return err
	}
	if path, ok := d.find(s.Name); ok {
		if !replace {
			line := d.line(path...)
			return fmt.Errorf("%s:%d: server %q %w", d.file, line, s.Name, ErrExists)
		}
		return d.merge(path, entry)
	}
	list := "mcpServers"
	if _, ok := d.object(list); !ok {
		if _, ok := d.object("servers"); ok {
			list = "servers"
		}
	}
	return d.Set(entry, list, s.Name)
}

// Remove takes a server out, with the comment that belongs to it. It is an
// error (ErrNoServer) when there is none of that name.
func (d *Document) Remove(name string) error {
	path, ok := d.find(name)
	if !ok {
		return fmt.Errorf("%s: %q: %w%s", d.file, name, ErrNoServer, suggest.DidYouMean(name, d.Servers()))
	}
	return d.Delete(path...)
}

// SetField sets one key of a server, at a path such as ("oauth", "clientId").
func (d *Document) SetField(server string, value any, path ...string) error {
	at, ok := d.find(server)
	if !ok {
		return fmt.Errorf("%s: %q: %w%s", d.file, server, ErrNoServer, suggest.DidYouMean(server, d.Servers()))
	}
	raw, err := jsonc.Marshal(value)
	if err != nil {
		return err
	}
	return d.Set(raw, append(slices.Clone(at), path...)...)
}

// AddRule appends a rule to usher.policy.allow or usher.policy.deny (list is
// "allow" or "deny"), unless it stands there.
func (d *Document) AddRule(list, pattern string) error {
	if list != "allow" && list != "deny" {
		return fmt.Errorf("there is no list of rules named %q", list)
	}
	if err := config.CheckRule(pattern); err != nil {
		return err
	}
	return d.appendString(pattern, "usher", "policy", list)
}

// RemoveRule takes a rule out of a list and reports whether it was there.
func (d *Document) RemoveRule(list, pattern string) (bool, error) {
	v, ok := d.value("usher", "policy", list)
	if !ok {
		return false, nil
	}
	arr, ok := v.Value.(*hujson.Array)
	if !ok {
		return false, d.source().ErrorAt(v.StartOffset, "usher.policy.%s must be an array", list)
	}
	for i, e := range arr.Elements {
		if l, ok := jsonc.Literal(e); ok && l.Kind() == '"' && l.String() == pattern {
			return true, d.deleteElement(v, i)
		}
	}
	return false, nil
}

// find returns the path of a server.
func (d *Document) find(name string) ([]string, bool) {
	for _, key := range []string{"mcpServers", "servers"} {
		if _, ok := d.value(key, name); ok {
			return []string{key, name}, true
		}
	}
	return nil, false
}

func (d *Document) line(path ...string) int {
	v, _ := d.value(path...)
	line, _ := d.source().Position(v.StartOffset)
	return line
}

// value returns the value at a path of keys.
func (d *Document) value(path ...string) (hujson.Value, bool) {
	v := d.root
	for _, key := range path {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return hujson.Value{}, false
		}
		i := slices.IndexFunc(obj.Members, func(m hujson.ObjectMember) bool { return jsonc.MemberKey(m) == key })
		if i < 0 {
			return hujson.Value{}, false
		}
		v = obj.Members[i].Value
	}
	return v, true
}

func (d *Document) object(path ...string) (*hujson.Object, bool) {
	v, ok := d.value(path...)
	if !ok {
		return nil, false
	}
	obj, ok := v.Value.(*hujson.Object)
	return obj, ok
}

// merge makes the object at path say what entry says, key by key.
func (d *Document) merge(path []string, entry json.RawMessage) error {
	var want map[string]json.RawMessage
	if err := json.Unmarshal(entry, &want); err != nil {
		return err
	}
	obj, ok := d.object(path...)
	if !ok {
		return d.Set(entry, path...)
	}
	var have []string
	for _, m := range obj.Members {
		have = append(have, jsonc.MemberKey(m))
	}
	for _, key := range have {
		at := append(slices.Clone(path), key)
		if _, keep := want[key]; !keep {
			if err := d.Delete(at...); err != nil {
				return err
			}
		}
	}
	for _, key := range objectKeys(entry) {
		at := append(slices.Clone(path), key)
		if v, ok := d.value(at...); ok && sameJSON(v, want[key]) {
			continue
		}
		if err := d.Set(want[key], at...); err != nil {
			return err
		}
	}
	return nil
}

func sameJSON(v hujson.Value, raw []byte) bool {
	c := v.Clone()
	c.Minimize()
	var b bytes.Buffer
	return json.Compact(&b, raw) == nil && bytes.Equal(bytes.TrimSpace(c.Pack()), b.Bytes())
}

// objectKeys lists the keys of a JSON object in its order.
func objectKeys(raw []byte) []string {
	v, err := hujson.Parse(raw)
	if err != nil {
		return nil
	}
	var out []string
	if obj, ok := v.Value.(*hujson.Object); ok {
		for _, m := range obj.Members {
			out = append(out, jsonc.MemberKey(m))
		}
	}
	return out
}

// AddInputs appends questions for ${input:ID} that are not in the file yet.
func (d *Document) AddInputs(inputs []config.Input) error {
	for _, in := range inputs {
		list, _ := d.value("inputs")
		arr, isArray := list.Value.(*hujson.Array)
		if isArray && slices.ContainsFunc(arr.Elements, func(e hujson.Value) bool { return inputID(e) == in.ID }) {
			continue
		}
		e := inputEntry{Type: "promptString", ID: in.ID, Description: in.Description, Password: in.Password, Options: in.Options, Default: in.Default}
		if len(in.Options) > 0 {
			e.Type = "pickString"
		}
		raw, err := jsonc.Marshal(e)
		if err != nil {
			return err
		}
		if err := d.appendTo(raw, "inputs"); err != nil {
			return err
		}
	}
	return nil
}

type inputEntry struct {
	Type        string   `json:"type"`
	ID          string   `json:"id"`
	Description string   `json:"description,omitempty"`
	Password    bool     `json:"password,omitempty"`
	Options     []string `json:"options,omitempty"`
	Default     string   `json:"default,omitempty"`
}

func inputID(v hujson.Value) string {
	m, err := jsonc.Plain(v)
	obj, ok := m.(map[string]any)
	if err != nil || !ok {
		return ""
	}
	id, _ := obj["id"].(string)
	return id
}
