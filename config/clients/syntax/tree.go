package syntax

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/pelletier/go-toml/v2"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/jsonc"
)

// Bounds of a foreign file. Claude Code keeps its history beside its servers,
// so JSON may be long; nobody's YAML is.
const (
	maxFileBytes = 32 << 20
	maxYAMLBytes = 1 << 20
	maxAliases   = 32
)

// Format is how a file is written.
type Format int

const (
	JSON Format = iota // with comments allowed
	TOML               // of Codex and Vibe
	YAML               // of Goose and Continue
)

// ReadFile reads a regular file, bounded.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(b) > maxFileBytes {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFileBytes)
	}
	return b, err
}

// Parse decodes a file into maps, slices and scalars. Errors have a place
// where the format's parser gives one, and never quote the text.
func Parse(path string, text []byte, f Format) (map[string]any, error) {
	if f != JSON && tooDeep(text) {
		return nil, &config.Error{File: path, Msg: "is nested too deeply"}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return map[string]any{}, nil
	}
	var tree any
	var err error
	switch f {
	case TOML:
		tree, err = parseTOML(path, text)
	case YAML:
		tree, err = parseYAML(path, text)
	default:
		tree, err = jsonc.Decode(path, text)
	}
	if err != nil {
		return nil, err
	}
	m, ok := tree.(map[string]any)
	if !ok && tree != nil {
		return nil, &config.Error{File: path, Msg: "does not hold an object"}
	}
	return m, nil
}

// tooDeep guards parsers that recurse without a bound. It looks at brackets
// and at dashes in a row only, so it may count some inside strings.
func tooDeep(text []byte) bool {
	const deepest = 500
	depth, row := 0, 0
	for _, b := range text {
		switch b {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '-', '?', ':', '!', '&', '*':
			row++
		case '\n':
			row = 0
		case ' ', '\t':
		default:
			row = 0
		}
		if depth > deepest || row > deepest {
			return true
		}
	}
	return false
}

func parseTOML(path string, text []byte) (any, error) {
	tree := map[string]any{}
	err := toml.Unmarshal(text, &tree)
	if err == nil {
		return jsonTree(tree), nil
	}
	e := &config.Error{File: path, Msg: "is not TOML", Err: err}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		e.Line, e.Column = de.Position()
		e.Msg = strings.TrimPrefix(de.Error(), "toml: ")
	}
	return nil, e
}

func parseYAML(path string, text []byte) (tree any, err error) {
	if len(text) > maxYAMLBytes {
		return nil, &config.Error{File: path, Msg: fmt.Sprintf("is larger than %d bytes", maxYAMLBytes)}
	}
	// The parser is not free of panics on nonsense; a file is no reason to die.
	defer func() {
		if r := recover(); r != nil {
			tree, err = nil, &config.Error{File: path, Msg: "is not YAML"}
		}
	}()
	file, err := parser.ParseBytes(text, 0)
	if err == nil {
		// A few aliases that refer to one another could grow without bound.
		var count aliasCounter
		for _, doc := range file.Docs {
			if doc.Body != nil { // a document of comments has none
				ast.Walk(&count, doc)
			}
		}
		if count > maxAliases {
			return nil, &config.Error{File: path, Msg: fmt.Sprintf("has more than %d aliases", maxAliases)}
		}
		err = yaml.Unmarshal(text, &tree)
	}
	if errors.Is(err, io.EOF) { // nothing but comments
		return nil, nil
	}
	if err != nil {
		// Not wrapped: the parser's own text quotes the file.
		e := &config.Error{File: path, Msg: "is not YAML"}
		var ye yaml.Error
		if errors.As(err, &ye) && ye.GetToken() != nil {
			e.Line, e.Column = ye.GetToken().Position.Line, ye.GetToken().Position.Column
			e.Msg = ye.GetMessage()
		}
		return nil, e
	}
	return jsonTree(tree), nil
}

type aliasCounter int

// Visit counts alias nodes.
func (c *aliasCounter) Visit(n ast.Node) ast.Visitor {
	if n.Type() == ast.AliasType {
		*c++
	}
	return c
}

// jsonTree turns what TOML and YAML can say and JSON cannot (other keys, dates,
// infinities) into what comes closest.
func jsonTree(v any) any {
	switch t := v.(type) {
	case nil, string, bool, int, int64, uint64:
		return v
	case float64:
		if math.IsNaN(t) || math.IsInf(t, 0) {
			return fmt.Sprint(t)
		}
		return v
	case map[string]any:
		for k, e := range t {
			t[k] = jsonTree(e)
		}
		return t
	case map[any]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			out[fmt.Sprint(k)] = jsonTree(e)
		}
		return out
	case []any:
		for i, e := range t {
			t[i] = jsonTree(e)
		}
		return t
	}
	return fmt.Sprint(v)
}

// Sniff goes by the name, then by the first character.
func Sniff(path string, text []byte) Format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml":
		return TOML
	case ".yaml", ".yml":
		return YAML
	case ".json", ".jsonc", ".json5":
		return JSON
	}
	trimmed := bytes.TrimSpace(text)
	switch {
	case bytes.HasPrefix(trimmed, []byte("{")), bytes.HasPrefix(trimmed, []byte("/")), len(trimmed) == 0:
		return JSON
	case bytes.Contains(text, []byte("[mcp_servers")):
		return TOML
	}
	return YAML
}

// lookup follows a path of keys to an object or a list of named objects.
func Lookup(tree map[string]any, keys []string) (map[string]any, bool) {
	var v any = tree
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[k]; !ok {
			return nil, false
		}
	}
	switch t := v.(type) {
	case map[string]any:
		return t, true
	case []any:
		return byName(t), true
	}
	return nil, false
}

// byName turns a list of objects with a name into an object of objects.
func byName(list []any) map[string]any {
	out := map[string]any{}
	for i, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			out[fmt.Sprintf("entry %d", i+1)] = e
			continue
		}
		name, _ := m["name"].(string)
		if name == "" {
			name = fmt.Sprintf("entry %d", i+1)
		}
		out[name] = m
	}
	return out
}

// Text writes a scalar as a person would.
func Text(v any) (string, bool) {
	switch t := v.(type) {
	case string:
		return t, true
	case json.Number:
		return t.String(), true
	case bool, int, int64, uint64, float64:
		return fmt.Sprint(t), true
	}
	return "", false
}
