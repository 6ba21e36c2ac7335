package config

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Mask is what a credential is printed as.
const Mask = "****"

// Masked returns a copy that may be printed: literal credentials are replaced
// by Mask, placeholders stay as they are written. What looks like a credential
// is masked too, so that a harmless value may be hidden, never the reverse on
// purpose.
func (s Server) Masked() Server {
	out := s.clone()
	_ = out.walk(func(f field, v string) (string, error) { // never fails
		switch f.kind {
		case secretField:
			return maskAll(v), nil
		case valueField:
			return maskValue(f.key, v), nil
		case argField:
			return v, nil // needs its neighbours: below
		case commandField:
			return maskProse(v), nil
		case urlField:
			return maskURL(v), nil
		}
		return maskValue("", v), nil
	})
	out.Args = MaskArgs(out.Args)
	if out.Foreign != nil {
		out.Foreign.Keys, _ = maskTree("", out.Foreign.Keys).(map[string]any)
	}
	return out
}

// maskAll hides every literal part of a template; an authorization scheme in
// front may stay.
func maskAll(v string) string {
	return mapLiterals(v, func(text string) string {
		trimmed := strings.TrimSpace(text)
		if trimmed == "" || authScheme(trimmed) {
			return text
		}
		if scheme, rest, ok := strings.Cut(trimmed, " "); ok && authScheme(scheme) && rest != "" {
			return scheme + " " + Mask
		}
		return Mask
	})
}

// maskValue hides a value if its key or its looks give it away.
func maskValue(key, v string) string {
	switch {
	case v == "true" || v == "false" || v == "":
		return v
	case IsSecretName(key):
		return maskAll(v)
	case strings.Contains(v, "://") && !strings.ContainsAny(v, " \t\n"):
		return maskURL(v)
	}
	return maskProse(mapLiterals(v, func(text string) string {
		if !LooksSecret(text) {
			return text
		}
		if scheme, rest, ok := strings.Cut(strings.TrimSpace(text), " "); ok && authScheme(scheme) && rest != "" {
			return scheme + " " + Mask
		}
		return Mask
	}))
}

// mapLiterals applies f to the literal parts of a template and to defaults,
// and leaves the rest of each placeholder as it is written.
func mapLiterals(v string, f func(string) string) string {
	parts, err := parseTemplate(v)
	if err != nil {
		return f(v)
	}
	var b strings.Builder
	for _, p := range parts {
		if p.ref == nil {
			b.WriteString(EscapeLiteral(f(p.text)))
			continue
		}
		b.WriteString(p.ref.masked(f))
	}
	return b.String()
}

// String writes the placeholder so that it may be printed.
func (p Placeholder) String() string {
	return p.masked(func(text string) string { return maskValue(p.Name, text) })
}

func (p Placeholder) masked(f func(string) string) string {
	switch {
	case p.HasDefault:
		head := strings.TrimSuffix(p.Raw, p.Default+"}")
		return head + mapLiterals(p.Default, f) + "}"
	case p.Kind == PlaceholderCommand:
		return "${cmd:" + maskWords(p.Name) + "}"
	}
	return p.Raw
}

var (
	userinfo  = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)([^/?#@\s]+)@`)
	parameter = regexp.MustCompile(`([?&#;])([^=&#;\s]+)=([^&#;\s]*)`)
	segment   = regexp.MustCompile(`/[^/?#\s]+`)
)

// maskURL hides userinfo, parameters that look like credentials, and random
// path segments, as personal addresses have.
func maskURL(v string) string {
	text, restore, ok := protect(v)
	if !ok {
		return Mask
	}
	text = userinfo.ReplaceAllStringFunc(text, func(m string) string {
		g := userinfo.FindStringSubmatch(m)
		user, password, hasPassword := strings.Cut(g[2], ":")
		switch {
		case hasPassword && onlyPlaceholders(password):
			return m
		case hasPassword && !LooksSecret(user):
			return g[1] + user + ":" + Mask + "@"
		case onlyPlaceholders(g[2]):
			return m
		}
		return g[1] + Mask + "@"
	})
	text = parameter.ReplaceAllStringFunc(text, func(m string) string {
		g := parameter.FindStringSubmatch(m)
		if onlyPlaceholders(g[3]) || !IsSecretName(g[2]) && !LooksSecret(g[3]) {
			return m
		}
		return g[1] + g[2] + "=" + Mask
	})
	text = segment.ReplaceAllStringFunc(text, func(m string) string {
		if LooksSecret(m[1:]) {
			return "/" + Mask
		}
		return m
	})
	return restore(text)
}

// protect replaces placeholders by marks that the patterns above pass over;
// restore puts them back. It is not ok for text that could hold such marks.
func protect(v string) (text string, restore func(string) string, ok bool) {
	parts, err := parseTemplate(v)
	if err != nil {
		return v, func(s string) string { return s }, true
	}
	if strings.ContainsRune(v, 0) {
		return "", nil, false
	}
	var b strings.Builder
	var refs []string
	for _, p := range parts {
		if p.ref == nil {
			b.WriteString(EscapeLiteral(p.text))
			continue
		}
		b.WriteString("\x00" + strconv.Itoa(len(refs)) + "\x00")
		refs = append(refs, p.ref.String())
	}
	return b.String(), func(s string) string {
		for i, ref := range refs {
			s = strings.Replace(s, "\x00"+strconv.Itoa(i)+"\x00", ref, 1)
		}
		return s
	}, true
}

var mark = regexp.MustCompile("\x00[0-9]+\x00")

func onlyPlaceholders(s string) bool { return mark.ReplaceAllString(s, "") == "" }

var (
	assignment = regexp.MustCompile(`\b([A-Za-z_][\w-]*)=("[^"]*"|'[^']*'|[^\s"'&]+)`)
	credential = regexp.MustCompile(`(?i)\b(bearer|basic|dpop)(\s+)([^\s"'\x00]+)`)
	jsonMember = regexp.MustCompile(`"([^"\\]+)"(\s*:\s*)"((?:[^"\\]|\\.)*)"`)
	address    = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"']+`)
	longWord   = regexp.MustCompile(`[^\s"',:;=()<>|&\x00]{12,}`)
	flagValue  = regexp.MustCompile(`(^|\s)(--?[A-Za-z][\w-]*)(\s+)([^\s"'-][^\s"']*|"[^"]*"|'[^']*')`)
)

// maskProse hides credentials inside a longer text, such as a shell command.
func maskProse(v string) string {
	text, restore, ok := protect(v)
	if !ok {
		return Mask
	}
	return restore(maskWords(text))
}

func maskWords(text string) string {
	text = jsonMember.ReplaceAllStringFunc(text, func(m string) string {
		g := jsonMember.FindStringSubmatch(m)
		if onlyPlaceholders(g[3]) || !IsSecretName(g[1]) && !LooksSecret(g[3]) {
			return m
		}
		return `"` + g[1] + `"` + g[2] + `"` + Mask + `"`
	})
	text = assignment.ReplaceAllStringFunc(text, func(m string) string {
		g := assignment.FindStringSubmatch(m)
		value := strings.Trim(g[2], `"'`)
		if onlyPlaceholders(value) || value == Mask || !IsSecretName(g[1]) && !LooksSecret(value) {
			return m
		}
		return g[1] + "=" + Mask
	})
	text = flagValue.ReplaceAllStringFunc(text, func(m string) string {
		g := flagValue.FindStringSubmatch(m)
		if onlyPlaceholders(g[4]) || !secretFlag(g[2]) {
			return m
		}
		return g[1] + g[2] + g[3] + Mask
	})
	text = credential.ReplaceAllString(text, "${1}${2}"+Mask)
	text = address.ReplaceAllStringFunc(text, maskURL)
	return longWord.ReplaceAllStringFunc(text, func(w string) string {
		if LooksSecret(w) {
			return Mask
		}
		return w
	})
}

func secretFlag(flag string) bool {
	name := strings.TrimLeft(flag, "-")
	return strings.HasPrefix(flag, "-") && utf8.RuneCountInString(name) > 1 && IsSecretName(name)
}

// MaskArgs hides credentials in a command line, given as its arguments.
func MaskArgs(args []string) []string {
	out := make([]string, len(args))
	key, header := "", false // what the argument before says about this one
	for i, a := range args {
		name, value, assigned := strings.Cut(a, "=")
		flag := strings.HasPrefix(a, "-")
		switch {
		case key != "":
			out[i], key = maskValue(key, a), ""
			continue
		case header && !flag:
			header = false
			k, v, ok := strings.Cut(a, ":")
			if !ok { // "--headers NAME VALUE"
				out[i], key = a, a
				continue
			}
			out[i] = k + ":" + headerGap(v) + maskValue(k, strings.TrimSpace(v))
			continue
		case flag && assigned && secretFlag(name):
			out[i] = name + "=" + maskAll(value)
			continue
		case secretFlag(a):
			key = strings.TrimLeft(a, "-")
		case a == "-H" || a == "--header" || a == "--headers":
			header = true
		}
		out[i] = maskHeader(a)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func headerGap(v string) string { return v[:len(v)-len(strings.TrimLeft(v, " \t"))] }

var headerLine = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*):(\s*)(\S.*)$`)

// maskHeader hides the value of an argument that is a whole header, and
// credentials anywhere else in it.
func maskHeader(a string) string {
	if g := headerLine.FindStringSubmatch(a); g != nil && IsSecretName(g[1]) && !strings.HasPrefix(g[3], "//") {
		return g[1] + ":" + g[2] + maskAll(g[3])
	}
	return maskValue("", a)
}

// maskTree masks the strings of decoded JSON by their keys.
func maskTree(key string, v any) any {
	switch t := v.(type) {
	case string:
		return maskValue(key, t)
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			out[k] = maskTree(k, e)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = maskTree(key, e)
		}
		return out
	}
	return v
}
