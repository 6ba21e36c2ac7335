package template

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Concealer finds literal credentials in templates and puts what Replace
// returns, a template, in their place. key is what stood beside them, or "".
type Concealer struct {
	// Replace returns the template that stands in for a credential.
	Replace func(key, secret string) string
	// Moving says that the result is to be used, not to be printed: where no
	// template can stand in for a credential, it is left alone.
	Moving bool
}

// Masker replaces credentials by Mask.
func Masker() Concealer {
	return Concealer{Replace: func(string, string) string { return Mask }}
}

// All conceals every literal part; an authorization scheme in front may stay.
func (c Concealer) All(key, v string) string {
	if v == "true" || v == "false" || v == "" {
		return v
	}
	parts, err := Parse(v)
	if err != nil {
		return c.Replace(key, v)
	}
	var b Builder
	for _, p := range parts {
		if p.Placeholder != nil {
			b.Raw(c.placeholder(*p.Placeholder, key, true))
			continue
		}
		head, secret := splitScheme(p.Text)
		b.Text(head)
		if strings.TrimSpace(secret) == "" {
			b.Text(secret)
			continue
		}
		b.Raw(c.Replace(key, secret))
	}
	return b.String()
}

// splitScheme sets "Bearer " apart from what follows.
func splitScheme(text string) (scheme, rest string) {
	trimmed := strings.TrimLeft(text, " \t")
	word, _, found := strings.Cut(trimmed, " ")
	if !authScheme(word) || !found && len(trimmed) > len(word) {
		return "", text
	}
	rest = strings.TrimLeft(trimmed[len(word):], " \t")
	return text[:len(text)-len(rest)], rest
}

// Value conceals a value if its key or its looks give it away.
func (c Concealer) Value(key, v string) string {
	switch {
	case IsSecretName(key):
		return c.All(key, v)
	case strings.Contains(v, "://") && !strings.ContainsAny(v, " \t\n"):
		return c.URL(key, v)
	}
	parts, err := Parse(v)
	if err == nil && len(parts) == 1 && parts[0].Placeholder == nil && LooksSecret(parts[0].Text) {
		return c.All(key, v)
	}
	return c.Prose(key, v)
}

// placeholder writes a placeholder with its default and its command concealed.
// secret says that its place makes the default a credential.
func (c Concealer) placeholder(p Placeholder, key string, secret bool) string {
	switch {
	case p.HasDefault:
		head := strings.TrimSuffix(p.Raw, p.Default+"}")
		if secret {
			return head + c.All(key, p.Default) + "}"
		}
		return head + c.Value(p.Name, p.Default) + "}"
	case p.Kind == Command && !c.Moving:
		// Templates do not work inside a command: it can only be masked.
		return "${cmd:" + Masker().Prose("", Escape(p.Name)) + "}"
	}
	return p.Raw
}

// marked is a template whose placeholders are marks that patterns pass over.
type marked struct {
	Concealer
	text string
	refs []string
	raw  bool // it was no template, so the text must not be escaped
}

var mark = lazyRegexp("\x00[0-9]+\x00")

func (c Concealer) mark(v string) *marked {
	m := &marked{Concealer: c}
	parts, err := Parse(strings.ReplaceAll(v, "\x00", "\ufffd"))
	if err != nil {
		m.text, m.raw = strings.ReplaceAll(v, "\x00", "\ufffd"), true
		return m
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Placeholder == nil {
			b.WriteString(p.Text)
			continue
		}
		b.WriteString(m.add(c.placeholder(*p.Placeholder, "", false)))
	}
	m.text = b.String()
	return m
}

func (m *marked) add(template string) string {
	m.refs = append(m.refs, template)
	return "\x00" + strconv.Itoa(len(m.refs)-1) + "\x00"
}

// hide conceals the text between the marks of s.
func (m *marked) hide(key, s string) string {
	var b strings.Builder
	last := 0
	for _, at := range append(mark().FindAllStringIndex(s, -1), []int{len(s), len(s)}) {
		if text := s[last:at[0]]; strings.TrimSpace(text) != "" {
			b.WriteString(m.add(m.Replace(key, text)))
		} else {
			b.WriteString(text)
		}
		b.WriteString(s[at[0]:at[1]])
		last = at[1]
	}
	return b.String()
}

// String puts the placeholders back.
func (m *marked) String() string {
	var b Builder
	text := b.Text
	if m.raw {
		text = b.Raw
	}
	last := 0
	for _, at := range mark().FindAllStringIndex(m.text, -1) {
		text(m.text[last:at[0]])
		i, _ := strconv.Atoi(m.text[at[0]+1 : at[1]-1]) // digits, by the pattern
		b.Raw(m.refs[i])
		last = at[1]
	}
	text(m.text[last:])
	return b.String()
}

// given reports a value that is nothing but placeholders, so nothing to hide.
func given(s string) bool { return strings.TrimSpace(mark().ReplaceAllString(s, "")) == "" }

// sub replaces each match of a pattern, given its groups.
func (m *marked) sub(pattern *regexp.Regexp, f func(g []string) string) {
	m.text = pattern.ReplaceAllStringFunc(m.text, func(match string) string {
		return f(pattern.FindStringSubmatch(match))
	})
}

var (
	userinfo   = lazyRegexp(`([A-Za-z][A-Za-z0-9+.-]*://)([^/?#@\s"']+)@`)
	parameter  = lazyRegexp(`([?&#;])([^=&#;\s\x00]+)=([^&#;\s"']*)`)
	segment    = lazyRegexp(`/([^/?#\s"'\x00]+)`)
	assignment = lazyRegexp(`\b([A-Za-z_][\w-]*)=("[^"]*"|'[^']*'|[^\s"'&]+)`)
	credential = lazyRegexp(`(?i)\b(bearer|basic|dpop)(\s+)([^\s"']+)`)
	jsonMember = lazyRegexp(`"([^"\\]+)"(\s*:\s*)"((?:[^"\\]|\\.)*)"`)
	longWord   = lazyRegexp(`[^\s"',:;=()<>|&\x00]{12,}`)
	flagValue  = lazyRegexp(`(^|\s)(--?[A-Za-z][\w-]*)(\s+)([^\s"'-][^\s"']*|"[^"]*"|'[^']*')`)
)

// URL conceals userinfo, parameters that look like credentials, and random
// path segments, as personal addresses have.
func (c Concealer) URL(key, v string) string {
	m := c.mark(v)
	m.address(key)
	return m.String()
}

func (m *marked) address(key string) {
	m.sub(userinfo(), func(g []string) string {
		user, password, both := strings.Cut(g[2], ":")
		switch {
		case both && !LooksSecret(user):
			return g[1] + user + ":" + m.hideUnlessGiven(key+"-password", password) + "@"
		case both:
			return g[1] + m.hideUnlessGiven(key+"-user", user) + ":" + m.hideUnlessGiven(key+"-password", password) + "@"
		}
		return g[1] + m.hideUnlessGiven(key+"-user", user) + "@"
	})
	m.sub(parameter(), func(g []string) string {
		if given(g[3]) || !IsSecretName(g[2]) && !LooksSecret(g[3]) {
			return g[0]
		}
		return g[1] + g[2] + "=" + m.hide(g[2], g[3])
	})
	m.sub(segment(), func(g []string) string {
		if !LooksSecret(g[1]) {
			return g[0]
		}
		return "/" + m.hide(key+"-path", g[1])
	})
}

func (m *marked) hideUnlessGiven(key, s string) string {
	if given(s) {
		return s
	}
	return m.hide(key, s)
}

// Prose conceals credentials inside a longer text, such as a shell command.
func (c Concealer) Prose(key, v string) string {
	m := c.mark(v)
	m.sub(jsonMember(), func(g []string) string {
		if given(g[3]) || !IsSecretName(g[1]) && !LooksSecret(g[3]) {
			return g[0]
		}
		return `"` + g[1] + `"` + g[2] + `"` + m.hide(g[1], g[3]) + `"`
	})
	m.sub(assignment(), func(g []string) string {
		value := strings.Trim(g[2], `"'`)
		if given(value) || strings.Contains(value, "://") || !IsSecretName(g[1]) && !LooksSecret(value) {
			return g[0]
		}
		return g[1] + "=" + strings.Replace(g[2], value, m.hide(g[1], value), 1)
	})
	m.sub(flagValue(), func(g []string) string {
		value := strings.Trim(g[4], `"'`)
		if given(value) || !secretFlag(g[2]) {
			return g[0]
		}
		return g[1] + g[2] + g[3] + strings.Replace(g[4], value, m.hide(strings.TrimLeft(g[2], "-"), value), 1)
	})
	m.sub(credential(), func(g []string) string { return g[1] + g[2] + m.hideUnlessGiven(key, g[3]) })
	if strings.Contains(m.text, "://") {
		m.address(key)
	}
	m.sub(longWord(), func(g []string) string {
		if !LooksSecret(g[0]) {
			return g[0]
		}
		return m.hide(key, g[0])
	})
	return m.String()
}

func secretFlag(flag string) bool {
	name := strings.TrimLeft(flag, "-")
	return strings.HasPrefix(flag, "-") && utf8.RuneCountInString(name) > 1 && IsSecretName(name)
}

// Args conceals credentials in a command line.
func (c Concealer) Args(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	out := make([]string, len(args))
	key, header := "", false // what the argument before says about this one
	for i, a := range args {
		name, value, assigned := strings.Cut(a, "=")
		flag := strings.HasPrefix(a, "-")
		switch {
		case key != "":
			out[i], key = c.Value(key, a), ""
			continue
		case header && !flag && !strings.Contains(a, ":"): // "--headers NAME VALUE"
			out[i], key, header = a, a, false
			continue
		case flag && assigned && secretFlag(name):
			out[i] = name + "=" + c.All(strings.TrimLeft(name, "-"), value)
			continue
		case secretFlag(a):
			key = strings.TrimLeft(a, "-")
		}
		header = a == "-H" || a == "--header" || a == "--headers"
		out[i] = c.header(a)
	}
	return out
}

var headerLine = lazyRegexp(`^([A-Za-z][A-Za-z0-9-]*):(\s*)(\S.*)$`)

// header conceals the value of an argument that is a whole header, and
// credentials anywhere else in it.
func (c Concealer) header(a string) string {
	if g := headerLine().FindStringSubmatch(a); g != nil && IsSecretName(g[1]) && !strings.HasPrefix(g[3], "//") {
		return g[1] + ":" + g[2] + c.All(g[1], g[3])
	}
	return c.Value("", a)
}
