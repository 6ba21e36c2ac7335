package template

import (
	"strings"
	"unicode/utf8"
)

var (
	quoted   = lazyRegexp(`"(?:[^"\\]|\\.)*("|$)`)
	bareWord = lazyRegexp(`[^\s"',:;=()<>|&{}\[\]]{8,}`)
	keyColon = lazyRegexp(`"?([\w-]+)"?\s*:\s*`)
)

// StarSecrets replaces credentials in a line of a file by as many stars, so
// that places in the line stay where they are. It has to cope with lines that
// do not parse, which is when they are shown.
func StarSecrets(line string) string {
	var spans [][2]int
	key, flag := "", ""
	for _, at := range quoted().FindAllStringIndex(line, -1) {
		inner := strings.Trim(line[at[0]:at[1]], `"`)
		if strings.HasPrefix(strings.TrimLeft(line[at[1]:], " \t"), ":") {
			key, flag = inner, ""
			continue
		}
		name := key
		if flag != "" {
			name = flag
		}
		if MaskArgs([]string{inner})[0] != inner || MaskValue(name, inner) != inner {
			spans = append(spans, [2]int{at[0] + 1, at[0] + 1 + len(inner)})
		}
		if flag = ""; secretFlag(inner) {
			flag = strings.TrimLeft(inner, "-")
		}
	}
	for _, at := range bareWord().FindAllStringIndex(line, -1) {
		if LooksSecret(line[at[0]:at[1]]) {
			spans = append(spans, [2]int{at[0], at[1]})
		}
	}
	for _, at := range keyColon().FindAllStringSubmatchIndex(line, -1) {
		rest := line[at[1]:]
		if !IsSecretName(line[at[2]:at[3]]) || strings.IndexAny(rest, `"{[$`) == 0 {
			continue
		}
		if end := strings.IndexAny(rest, "\",}]"); end >= 0 {
			rest = rest[:end]
		}
		spans = append(spans, [2]int{at[1], at[1] + len(strings.TrimRight(rest, " \t\r"))})
	}
	return star(line, spans)
}

func star(line string, spans [][2]int) string {
	var b strings.Builder
	for i, r := range line {
		hide := false
		for _, s := range spans {
			hide = hide || i >= s[0] && i < s[1]
		}
		if hide {
			r = '*'
		}
		if r == utf8.RuneError {
			r = '·'
		}
		b.WriteRune(r)
	}
	return b.String()
}
