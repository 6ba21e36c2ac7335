package cmdutil

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

// JSONText writes v as indented JSON that is safe to show on a terminal: what
// encoding/json leaves as it is and a terminal would act on, is escaped. To a
// program both mean the same.
func JSONText(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	if !strings.ContainsFunc(b.String(), IsHostile) {
		return b.Bytes(), nil
	}
	var out bytes.Buffer
	for _, r := range b.String() {
		switch {
		case !IsHostile(r):
			out.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, hi, lo)
		}
	}
	return out.Bytes(), nil
}
