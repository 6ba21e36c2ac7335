package pins

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode"
	"unicode/utf8"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/lookalike"
)

// Definition is a tool as its server describes it. The whole of it is pinned,
// members that nobody knows yet included: a model reads them all.
type Definition struct {
	// Name is empty for a tool that cannot be called.
	Name string
	Raw  []byte
	sum  string // SHA-256 of the bytes: equal sums need no further look

	// Filled by canonicalize.
	form []byte // canonical
	hash string // SHA-256 of form
	bare string // the same without the name, to notice a rename
	err  error  // why it has no canonical form
}

// NewDefinition reads a tool as a server listed it.
func NewDefinition(raw []byte) Definition {
	sum := sha256.Sum256(raw)
	return Definition{Name: jsonx.GetText(raw, "name"), Raw: raw, sum: hex.EncodeToString(sum[:])}
}

// canonicalize computes the form and hashes once.
func (d *Definition) canonicalize() {
	if d.hash != "" || d.err != nil {
		return
	}
	if d.form, d.err = normalForm(d.Raw); d.err != nil {
		return
	}
	d.hash = digest(d.form)
	d.bare = digest(jsonx.Delete(d.form, "name"))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
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
func hidesIn(raw []byte) (found bool) {
	jsonx.EachText(raw, func(text []byte) bool {
		found = hidesText(text)
		return !found
	})
	return found
}

func hidesText(text []byte) bool {
	var before rune
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		joins := r == 0xFE0F && pictorial(before) || r == 0x200D && (pictorial(before) || before == 0xFE0F)
		if lookalike.Hidden(r) && !joins {
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
