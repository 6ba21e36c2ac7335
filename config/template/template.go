package template

import (
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/internal/suggest"
	"github.com/usher-mcp/usher/internal/visible"
)

// The kinds of placeholder.
const (
	Env     = "env"
	File    = "file"
	Secret  = "secret"
	Input   = "input"
	Command = "cmd"
)

// Placeholder is one ${…} of a string.
type Placeholder struct {
	Kind string // Env, …
	Name string // the variable, path, secret, input or command line
	// Default is the template to use when the variable is unset or empty; it
	// is meant only when HasDefault is true.
	Default    string
	HasDefault bool
	Raw        string // as written, with its braces
}

// Part is a piece of a template: literal text, or a placeholder.
type Part struct {
	Text        string
	Placeholder *Placeholder // nil for text
}

// Parse splits s into literal text and placeholders.
func Parse(s string) ([]Part, error) { return parseTemplateDepth(s, 0) }

// Builder puts a template together out of text, which is escaped, and
// placeholders. The zero value is empty.
type Builder struct {
	done strings.Builder
	text strings.Builder
}

// Text adds literal text.
func (b *Builder) Text(text string) { b.text.WriteString(text) }

// Raw adds something that is a template already.
func (b *Builder) Raw(template string) {
	if template == "" {
		return
	}
	text := b.text.String()
	b.text.Reset()
	b.done.WriteString(Escape(text))
	if strings.HasPrefix(template, "$") || strings.HasPrefix(template, "{") {
		// Dollars right before a placeholder would escape it.
		b.done.WriteString(strings.Repeat("$", trailingDollars(text)))
	}
	b.done.WriteString(template)
}

// String returns the template.
func (b *Builder) String() string {
	return b.done.String() + Escape(b.text.String())
}

func trailingDollars(s string) int { return len(s) - len(strings.TrimRight(s, "$")) }

// Placeholders lists the placeholders of s in order, those inside defaults
// included.
func Placeholders(s string) ([]Placeholder, error) {
	parts, err := Parse(s)
	if err != nil {
		return nil, err
	}
	var out []Placeholder
	for _, p := range parts {
		if p.Placeholder == nil {
			continue
		}
		out = append(out, *p.Placeholder)
		if p.Placeholder.HasDefault {
			inner, err := Placeholders(p.Placeholder.Default)
			if err != nil {
				return nil, err
			}
			out = append(out, inner...)
		}
	}
	return out, nil
}

// Escape writes text as a template that yields exactly text.
func Escape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		n := dollars(text[i:])
		if n == 0 {
			b.WriteByte(text[i])
			i++
			continue
		}
		b.WriteString(text[i : i+n])
		if i += n; i < len(text) && text[i] == '{' {
			b.WriteString(strings.Repeat("$", n))
		}
	}
	return b.String()
}

// maxTemplateDepth bounds defaults inside defaults.
const maxTemplateDepth = 8

// parseTemplateDepth: of a run of dollars before a brace each pair stands for
// one dollar; an odd one out opens a placeholder.
func parseTemplateDepth(s string, depth int) ([]Part, error) {
	if depth > maxTemplateDepth {
		return nil, fmt.Errorf("placeholders are nested deeper than %d levels", maxTemplateDepth)
	}
	var parts []Part
	var text strings.Builder
	for i := 0; i < len(s); {
		n := dollars(s[i:])
		if n == 0 {
			text.WriteByte(s[i])
			i++
			continue
		}
		i += n
		if i == len(s) || s[i] != '{' {
			text.WriteString(s[i-n : i])
			continue
		}
		text.WriteString(strings.Repeat("$", n/2))
		if n%2 == 0 {
			continue // the brace follows as text
		}
		length := closingBrace(s[i:])
		if length < 0 {
			return nil, fmt.Errorf("the placeholder %s is never closed; expected } (write $${ for a literal ${)", visible.Quote(s[i-1:]))
		}
		ref, err := parsePlaceholder(s[i+1:i+length], depth)
		if err != nil {
			return nil, err
		}
		if text.Len() > 0 {
			parts = append(parts, Part{Text: text.String()})
			text.Reset()
		}
		parts = append(parts, Part{Placeholder: ref})
		i += length + 1
	}
	if text.Len() > 0 {
		parts = append(parts, Part{Text: text.String()})
	}
	return parts, nil
}

func dollars(s string) int {
	n := 0
	for n < len(s) && s[n] == '$' {
		n++
	}
	return n
}

// closingBrace returns the index of the brace that closes the one s starts
// with, or -1.
func closingBrace(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func parsePlaceholder(body string, depth int) (*Placeholder, error) {
	ref := &Placeholder{Kind: Env, Name: body, Raw: "${" + body + "}"}
	kind, rest, found := strings.Cut(body, ":")
	bare := !found || strings.HasPrefix(rest, "-")
	if !bare {
		ref.Kind, ref.Name = kind, rest
	}
	switch ref.Kind {
	case Env:
		ref.Name, ref.Default, ref.HasDefault = strings.Cut(ref.Name, ":-")
		if !validVariable(ref.Name, bare) {
			return nil, fmt.Errorf("%s names no environment variable", visible.Quote(ref.Raw))
		}
	case Secret, Input:
		if !ValidSecretName(ref.Name) {
			return nil, fmt.Errorf("%s: a name is made of letters, digits and . _ - / @", visible.Quote(ref.Raw))
		}
	case File, Command:
		if strings.TrimSpace(ref.Name) == "" || strings.ContainsRune(ref.Name, 0) {
			return nil, fmt.Errorf("%s is empty", visible.Quote(ref.Raw))
		}
	default:
		kinds := []string{Env, File, Secret, Input, Command}
		return nil, fmt.Errorf("%s: there is no placeholder of kind %s%s (kinds: %s; write $${ for a literal ${)",
			visible.Quote(ref.Raw), visible.Quote(kind), suggest.DidYouMean(kind, kinds), strings.Join(kinds, ", "))
	}
	if ref.HasDefault {
		if _, err := parseTemplateDepth(ref.Default, depth+1); err != nil {
			return nil, err
		}
	}
	return ref, nil
}

// validVariable is strict for ${VAR}, where a slip should be noticed, and
// takes what operating systems take for ${env:VAR} ("ProgramFiles(x86)").
func validVariable(name string, bare bool) bool {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return false
	}
	if !bare {
		return !visible.Suspicious(name)
	}
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return true
}

// ValidSecretName reports whether ${secret:NAME} may have this name.
func ValidSecretName(name string) bool {
	for _, r := range name {
		ok := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/@", r)
		if !ok {
			return false
		}
	}
	return name != "" && len(name) <= 128
}
