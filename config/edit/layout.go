package edit

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/usher-mcp/usher/config/jsonc"
)

// sourceText is the text of a file, with questions about its lines.
type sourceText []byte

// compact reports a file that is all on one line.
func (t sourceText) compact() bool {
	return !bytes.ContainsRune(bytes.TrimSpace(t), '\n') && len(bytes.TrimSpace(t)) > 2
}

func (t sourceText) newline() string {
	if bytes.Contains(t, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// unit is one step of indentation: that of the first member of the file.
func (d *Document) unit() string {
	if obj, ok := d.root.Value.(*hujson.Object); ok && len(obj.Members) > 0 {
		if in := d.text.lineIndent(obj.Members[0].Name.StartOffset); in != "" {
			return in
		}
	}
	return "  "
}

// lineIndent is the blank space that the line of offset starts with.
func (t sourceText) lineIndent(offset int) string {
	start := bytes.LastIndexByte(t[:offset], '\n') + 1
	line := t[start:offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// indented lays a value out; lists of short strings stay on one line, as
// people write arguments.
func (d *Document) indented(raw json.RawMessage, indent string) []byte {
	if d.text.compact() {
		var b bytes.Buffer
		if json.Compact(&b, raw) == nil {
			return b.Bytes()
		}
	}
	return []byte(layout(raw, indent, d.unit(), d.text.newline()))
}

// lineWidth is how long a list may get before it is broken up.
const lineWidth = 80

func layout(raw []byte, indent, unit, newline string) string {
	v, err := hujson.Parse(raw)
	if err != nil {
		return string(raw)
	}
	return layoutValue(v, indent, unit, newline)
}

func layoutValue(v hujson.Value, indent, unit, newline string) string {
	inner := indent + unit
	var items []string
	open, closing := "[", "]"
	flat := true
	switch t := v.Value.(type) {
	case *hujson.Object:
		open, closing, flat = "{", "}", false
		for _, m := range t.Members {
			items = append(items, string(m.Name.Value.(hujson.Literal))+": "+layoutValue(m.Value, inner, unit, newline))
		}
	case *hujson.Array:
		for _, e := range t.Elements {
			_, isLiteral := jsonc.Literal(e)
			flat = flat && isLiteral
			items = append(items, layoutValue(e, inner, unit, newline))
		}
	default:
		return string(t.(hujson.Literal))
	}
	if len(items) == 0 {
		return open + closing
	}
	if one := open + strings.Join(items, ", ") + closing; flat && len(one) <= lineWidth {
		return one
	}
	return open + newline + inner + strings.Join(items, ","+newline+inner) + newline + indent + closing
}
