package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/internal/argument"
	"github.com/usher-mcp/usher/internal/jsonx"
)

// field is one argument of a tool in a form.
type field struct {
	Name     string
	Shown    string // the name, with everything made visible
	ID       string
	Kind     string // text, area, number, choice or json
	Type     string // in words
	About    string
	Required bool
	Options  []string // of a choice
	Value    string
	Default  string
	Problem  string

	schema []byte
}

// Input is the name of the form's field.
func (f field) Input() string { return argPrefix + f.Name }

// argPrefix keeps the arguments of a tool apart from what a form needs itself.
const argPrefix = "arg."

// Bounds of a form. A tool with more arguments is filled in as JSON.
const (
	maxFields  = 60
	maxChoices = 200
)

// fieldsOf makes a form of a tool's schema; none when it can only be filled in as
// JSON.
func fieldsOf(schema []byte) []field {
	props, _ := jsonx.Get(schema, "properties")
	if jsonx.TypeOf(props) != "object" {
		return nil
	}
	needed := texts(schema, "required")
	var out []field
	m := jsonx.Object(props)
	for m.Next() {
		if len(out) == maxFields {
			return nil
		}
		f := field{Name: string(m.Key), Required: slices.Contains(needed, string(m.Key)), schema: simple(m.Value, schema)}
		f.ID, f.Shown = id("f", f.Name), plain(f.Name)
		f.About, _ = cutText(plain(jsonx.GetText(m.Value, "description")), 600)
		f.shape()
		if def, ok := jsonx.Get(m.Value, "default"); ok && string(def) != "null" {
			f.Default = shownValue(def)
		}
		out = append(out, f)
	}
	if m.Err() != nil {
		return nil
	}
	return out
}

// shape chooses how a field is filled in.
func (f *field) shape() {
	choices := texts(f.schema, "enum")
	enum, _ := jsonx.Get(f.schema, "enum")
	all := 0
	for e := jsonx.Array(enum); e.Next(); {
		all++
	}
	switch f.Type = jsonx.GetText(f.schema, "type"); {
	case all > 0 && all == len(choices) && all <= maxChoices:
		f.Kind, f.Options, f.Type = "choice", choices, "one of these"
	case f.Type == "boolean":
		f.Kind, f.Options = "choice", []string{"true", "false"}
	case f.Type == "integer":
		f.Kind, f.Type = "number", "whole number"
	case f.Type == "number":
		f.Kind = "number"
	case f.Type == "string" && long(f.schema):
		f.Kind, f.Type = "area", "text"
	case f.Type == "string":
		f.Kind, f.Type = "text", "text"
		if format := jsonx.GetText(f.schema, "format"); format != "" {
			f.Type += ", " + plain(format)
		}
	case f.Type == "array", f.Type == "object":
		f.Kind, f.Type = "json", f.Type+", as JSON"
	default:
		f.Kind, f.Type = "text", "anything"
	}
}

// long guesses whether a text has several lines.
func long(schema []byte) bool {
	words := strings.ToLower(jsonx.GetText(schema, "description"))
	for _, hint := range []string{"content", "markdown", "body", "multi-line", "multiline", "query text", "sql", "code", "script"} {
		if strings.Contains(words, hint) {
			return true
		}
	}
	return false
}

// simple follows a reference into the same schema and takes the null out of "this or
// null", which is how many generators write what is optional.
func simple(prop, root []byte) []byte {
	for range 8 {
		if ref := jsonx.GetText(prop, "$ref"); strings.HasPrefix(ref, "#/") {
			to, ok := jsonx.Path(root, strings.Split(ref[2:], "/")...)
			if !ok {
				return prop
			}
			prop = to
			continue
		}
		only := onlyOne(prop)
		if only == nil {
			return prop
		}
		prop = only
	}
	return prop
}

func onlyOne(prop []byte) []byte {
	for _, key := range []string{"anyOf", "oneOf"} {
		list, ok := jsonx.Get(prop, key)
		if !ok {
			continue
		}
		var only []byte
		for e := jsonx.Array(list); e.Next(); {
			switch {
			case jsonx.GetText(e.Value, "type") == "null":
			case only != nil:
				return nil
			default:
				only = e.Value
			}
		}
		return only
	}
	return nil
}

// texts are the strings of a member that is a list.
func texts(obj []byte, key string) []string {
	list, _ := jsonx.Get(obj, key)
	var out []string
	for e := jsonx.Array(list); e.Next(); {
		if s, ok := jsonx.Text(e.Value); ok {
			out = append(out, s)
		}
	}
	return out
}

// shownValue is the text of a string, and the JSON of anything else.
func shownValue(raw []byte) string {
	if s, ok := jsonx.Text(raw); ok {
		return plain(s)
	}
	return plain(string(raw))
}

// arguments reads a filled-in form. What is wrong is said at the field it is about;
// whole is what is wrong with the JSON form.
func arguments(fields []field, form url.Values) (args []byte, whole string, ok bool) {
	if text := strings.TrimSpace(form.Get("json")); text != "" {
		if err := jsonx.Valid([]byte(text)); err != nil {
			return nil, fmt.Sprintf("not valid JSON: %v", err), false
		}
		if kind := jsonx.TypeOf([]byte(text)); kind != "object" {
			return nil, fmt.Sprintf("this is a JSON %s, and arguments are an object", kind), false
		}
		return []byte(text), "", true
	}
	args, ok = []byte("{}"), true
	for i := range fields {
		f := &fields[i]
		f.Value = form.Get(f.Input())
		if f.Kind != "area" && f.Kind != "json" {
			f.Value = strings.TrimSpace(f.Value)
		}
		if f.Value == "" {
			if f.Required {
				f.Problem, ok = "required", false
			}
			if f.Required && (f.Kind == "text" || f.Kind == "area") {
				f.Problem += "; an empty text can be given as JSON"
			}
			continue
		}
		value, want := argument.Parse(strings.ReplaceAll(f.Value, "\r\n", "\n"), f.schema)
		if want != "" {
			f.Problem, ok = "it has to be "+want, false
			continue
		}
		args = jsonx.Set(args, f.Name, value)
	}
	return args, "", ok
}
