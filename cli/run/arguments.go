package run

import (
	"fmt"
	"io"
	"strings"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/argument"
	"github.com/usher-mcp/usher/internal/jsonx"
)

// maxArguments bounds what is read from standard input.
const maxArguments = 64 << 20

// readArguments makes the JSON object of a call's arguments from what was given:
// --args JSON, "-" for standard input, or key=value words. schema may be nil; with
// it values get the type that the tool wants.
func readArguments(words []string, args string, in io.Reader, schema func() ([]byte, error)) ([]byte, error) {
	const hint = `write key=value, key:=JSON, --args '{"key": "value"}', or - to read JSON from standard input`
	switch {
	case args != "" && len(words) > 0:
		return nil, cmdutil.Usagef(hint, "arguments are given twice: as words and with --args")
	case args != "":
		return checkObject([]byte(args), "--args", hint)
	case len(words) == 1 && words[0] == "-":
		text, err := io.ReadAll(io.LimitReader(in, maxArguments))
		if err != nil {
			return nil, fmt.Errorf("read arguments from standard input: %w", err)
		}
		return checkObject(text, "standard input", hint)
	case len(words) == 0:
		return []byte("{}"), nil
	}
	def, err := schema()
	if err != nil {
		return nil, err
	}
	out := []byte("{}")
	for _, w := range words {
		key, value, err := readWord(w, def, hint)
		if err != nil {
			return nil, err
		}
		if _, twice := jsonx.Get(out, key); twice {
			return nil, cmdutil.Usagef(hint, "%q is given twice", key)
		}
		out = jsonx.Set(out, key, value)
	}
	return out, nil
}

func checkObject(text []byte, where, hint string) ([]byte, error) {
	if err := jsonx.Valid(text); err != nil {
		return nil, cmdutil.Usagef(hint, "the arguments in %s are not valid JSON: %v", where, err)
	}
	if kind := jsonx.TypeOf(text); kind != "object" {
		return nil, cmdutil.Usagef(hint, "the arguments in %s are a JSON %s, not an object", where, kind)
	}
	return text, nil
}

// readWord reads key=value, where the schema decides the type, or key:=JSON.
func readWord(word string, schema []byte, hint string) (key string, value []byte, err error) {
	key, text, ok := strings.Cut(word, "=")
	if !ok || key == "" || key == ":" {
		return "", nil, cmdutil.Usagef(hint, "invalid argument %q: expected key=value", word)
	}
	if raw, isRaw := strings.CutSuffix(key, ":"); isRaw {
		if err := jsonx.Valid([]byte(text)); err != nil {
			return "", nil, cmdutil.Usagef(hint, "the value of %s is not valid JSON: %v", raw, err)
		}
		return raw, []byte(text), nil
	}
	prop, known := jsonx.Path(schema, "properties", key)
	if !known {
		if near := nearestProperty(key, schema); near != "" {
			return "", nil, cmdutil.Usagef(fmt.Sprintf("did you mean %s=%s?", near, text), "the tool takes no argument %q", key)
		}
	}
	value, want := argument.Parse(text, prop)
	if want != "" {
		return "", nil, cmdutil.Usagef(hint, "%s wants %s, not %q", key, want, text)
	}
	return key, value, nil
}

// nearestProperty returns a parameter that key is probably a misspelling of; ""
// when the schema takes anything or nothing is near.
func nearestProperty(key string, schema []byte) string {
	props, ok := jsonx.Get(schema, "properties")
	if !ok {
		return ""
	}
	var names []string
	for m := jsonx.Object(props); m.Next(); {
		names = append(names, string(m.Key))
	}
	if near := config.Nearest(key, names); len(near) > 0 {
		return near[0]
	}
	return ""
}
