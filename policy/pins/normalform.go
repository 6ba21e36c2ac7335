package pins

import (
	"bytes"
	"slices"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// normalForm is the canonical form of a tool with the lists of its schemas that mean
// sets (required, type) in order: servers that keep them in hash tables send them in
// another order every time. Sorting a list moves its texts about within the bytes it
// has, so one walk over the canonical form does it all.
func normalForm(tool []byte) ([]byte, error) {
	form, err := jsonx.Canonical(tool)
	if err != nil {
		return nil, err
	}
	s := schemaWalk{b: form}
	s.tool()
	return form, nil
}

// schemaWalk goes over canonical JSON: valid, without white space or duplicates, and
// never deeper than jsonx reads.
type schemaWalk struct {
	b []byte
	i int
}

// tool sorts what its two schemas hold.
func (s *schemaWalk) tool() {
	s.members(func(key []byte) {
		switch string(key) {
		case "inputSchema", "outputSchema":
			s.schema()
		default:
			s.skip()
		}
	})
}

func (s *schemaWalk) schema() {
	s.members(func(key []byte) {
		switch string(key) {
		case "required", "type":
			s.set()
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			s.members(func([]byte) { s.schema() })
		case "items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames",
			"not", "if", "then", "else":
			s.schema()
		case "allOf", "anyOf", "oneOf", "prefixItems":
			s.elements(s.schema)
		default:
			s.skip()
		}
	})
}

// members calls f at the value of each member of an object, which f passes over.
// Anything else than an object it passes over itself.
func (s *schemaWalk) members(f func(key []byte)) {
	if s.b[s.i] != '{' {
		s.skip()
		return
	}
	for s.i++; s.b[s.i] != '}'; {
		start := s.i + 1
		s.text()
		key := s.b[start : s.i-1]
		s.i++ // the colon
		f(key)
		if s.b[s.i] == ',' {
			s.i++
		}
	}
	s.i++
}

// elements is members for an array.
func (s *schemaWalk) elements(f func()) {
	if s.b[s.i] != '[' {
		s.skip()
		return
	}
	for s.i++; s.b[s.i] != ']'; {
		f()
		if s.b[s.i] == ',' {
			s.i++
		}
	}
	s.i++
}

// set sorts an array of strings and leaves everything else.
func (s *schemaWalk) set() {
	start := s.i
	var texts [][]byte
	only := s.b[start] == '['
	s.elements(func() {
		from := s.i
		only = only && s.b[from] == '"'
		s.skip()
		texts = append(texts, s.b[from:s.i])
	})
	if !only || slices.IsSortedFunc(texts, bytes.Compare) {
		return
	}
	slices.SortFunc(texts, bytes.Compare)
	copy(s.b[start:s.i], joinArray(texts))
}

func joinArray(items [][]byte) []byte {
	return append(append([]byte("["), bytes.Join(items, []byte(","))...), ']')
}

// skip passes over a value.
func (s *schemaWalk) skip() {
	for open := 0; ; {
		switch s.b[s.i] {
		case '"':
			s.text()
		case '{', '[':
			open++
			s.i++
		case '}', ']':
			open--
			s.i++
		case ',', ':':
			s.i++
			continue
		default: // a number or a literal
			for s.i < len(s.b) && s.b[s.i] != ',' && s.b[s.i] != ']' && s.b[s.i] != '}' {
				s.i++
			}
		}
		if open == 0 {
			return
		}
	}
}

// text passes over a string.
func (s *schemaWalk) text() {
	for s.i++; s.b[s.i] != '"'; s.i++ {
		if s.b[s.i] == '\\' {
			s.i++
		}
	}
	s.i++
}
