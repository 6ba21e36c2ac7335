package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// definition is a tool as its server describes it. The whole of it is pinned,
// members that nobody knows yet included: a model reads them all.
type definition struct {
	name string
	raw  []byte
	sum  string // SHA-256 of the bytes: equal sums need no further look

	// Filled by canonicalize.
	form []byte // canonical
	hash string // SHA-256 of form
	bare string // the same without the name, to notice a rename
	err  error  // why it has no canonical form
}

func newDefinition(raw []byte) definition {
	sum := sha256.Sum256(raw)
	return definition{name: jsonx.GetText(raw, "name"), raw: raw, sum: hex.EncodeToString(sum[:])}
}

// canonicalize computes the form and hashes once.
func (d *definition) canonicalize() {
	if d.hash != "" || d.err != nil {
		return
	}
	if d.form, d.err = jsonx.Canonical(sortSets(d.raw)); d.err != nil {
		return
	}
	d.hash = digest(d.form)
	d.bare = digest(jsonx.Delete(d.form, "name"))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// sortSets brings the lists of a definition's schemas that mean sets (required,
// type) into order: servers that keep them in hash tables send them in another
// order every time.
func sortSets(tool []byte) []byte {
	var edits []jsonx.Edit
	for _, member := range [...]string{"inputSchema", "outputSchema"} {
		if schema, ok := jsonx.Get(tool, member); ok {
			if sorted := sortSchema(schema); !bytes.Equal(sorted, schema) {
				edits = append(edits, jsonx.Edit{Key: member, Value: sorted})
			}
		}
	}
	if edits == nil || hasDuplicate(tool) {
		return tool
	}
	return jsonx.Apply(tool, edits...)
}

// hasDuplicate keeps an edit from hiding that a member stands twice.
func hasDuplicate(obj []byte) bool {
	_, dup := jsonx.Duplicate(obj)
	return dup
}

func sortSchema(schema []byte) []byte {
	if jsonx.TypeOf(schema) != "object" || hasDuplicate(schema) {
		return schema
	}
	var edits []jsonx.Edit
	for m := jsonx.Object(schema); m.Next(); {
		sorted := m.Value
		switch string(m.Key) {
		case "required", "type":
			sorted = sortTexts(m.Value)
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			sorted = eachMember(m.Value, sortSchema)
		case "items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames",
			"not", "if", "then", "else":
			sorted = sortSchema(m.Value)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			sorted = eachElement(m.Value, sortSchema)
		}
		if !bytes.Equal(sorted, m.Value) {
			edits = append(edits, jsonx.Edit{Key: string(m.Key), Value: sorted})
		}
	}
	return jsonx.Apply(schema, edits...)
}

// sortTexts sorts an array of strings and leaves everything else.
func sortTexts(raw []byte) []byte {
	var texts [][]byte
	for e := jsonx.Array(raw); e.Next(); {
		if jsonx.TypeOf(e.Value) != "string" {
			return raw
		}
		texts = append(texts, e.Value)
	}
	if slices.IsSortedFunc(texts, bytes.Compare) {
		return raw
	}
	slices.SortFunc(texts, bytes.Compare)
	return joinArray(texts)
}

func joinArray(items [][]byte) []byte {
	return append(append([]byte("["), bytes.Join(items, []byte(","))...), ']')
}

func eachMember(obj []byte, change func([]byte) []byte) []byte {
	if jsonx.TypeOf(obj) != "object" || hasDuplicate(obj) {
		return obj
	}
	var edits []jsonx.Edit
	for m := jsonx.Object(obj); m.Next(); {
		if v := change(m.Value); !bytes.Equal(v, m.Value) {
			edits = append(edits, jsonx.Edit{Key: string(m.Key), Value: v})
		}
	}
	return jsonx.Apply(obj, edits...)
}

func eachElement(arr []byte, change func([]byte) []byte) []byte {
	var items [][]byte
	changed := false
	for e := jsonx.Array(arr); e.Next(); {
		v := change(e.Value)
		changed = changed || !bytes.Equal(v, e.Value)
		items = append(items, v)
	}
	if !changed {
		return arr
	}
	return joinArray(items)
}

// Hidden returns the members of a tool definition, such as "description" or
// "inputSchema", in which there is text that a person cannot see: invisible
// characters can carry instructions to a model. Emoji are made with some of them
// and do not count.
func Hidden(tool []byte) []string {
	if plainASCII(tool) {
		return nil
	}
	var found []string
	for m := jsonx.Object(tool); m.Next(); {
		if hiddenKey := hidesText(m.Key); hiddenKey || hidesIn(m.Value) {
			found = append(found, string(m.Key))
		}
	}
	return found
}

// plainASCII also rules out escapes of other characters.
func plainASCII(b []byte) bool {
	for i, c := range b {
		if c >= utf8.RuneSelf || c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
			return false
		}
		if c == '\\' && i+1 < len(b) && (b[i+1] == 'u' || b[i+1] == 'b' || b[i+1] == 'f') {
			return false
		}
	}
	return true
}

// hidesIn looks at all strings inside a value, names of members included.
func hidesIn(raw []byte) bool {
	switch jsonx.TypeOf(raw) {
	case "string":
		text, _ := jsonx.Text(raw)
		return hidesText([]byte(text))
	case "object":
		for m := jsonx.Object(raw); m.Next(); {
			if hidesText(m.Key) || hidesIn(m.Value) {
				return true
			}
		}
	case "array":
		for e := jsonx.Array(raw); e.Next(); {
			if hidesIn(e.Value) {
				return true
			}
		}
	}
	return false
}

func hidesText(text []byte) bool {
	var before rune
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		joins := r == 0xFE0F && pictorial(before) || r == 0x200D && (pictorial(before) || before == 0xFE0F)
		if hidden(r) && !joins {
			return true
		}
		before, text = r, text[n:]
	}
	return false
}

// pictorial reports whether an emoji may go on behind r.
func pictorial(r rune) bool {
	return unicode.Is(unicode.So, r) || r >= 0x1F000 && r <= 0x1FAFF || unicode.Is(unicode.Sk, r) ||
		r == '#' || r == '*' || r >= '0' && r <= '9' || r == 0x203C || r == 0x2049
}
