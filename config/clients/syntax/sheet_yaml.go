package syntax

import (
	"slices"
	"strings"
)

// yamlSheet edits lists that are written as blocks, line by line. A list in
// flow style is left to people, unless it is empty.
type yamlSheet struct {
	at   Location
	body string
}

// yamlList is where the list of servers stands: lines[key] names it, its items
// are in lines[key+1:end].
type yamlList struct {
	lines  []string // with their line breaks
	key    int
	end    int // behind the last line with content
	indent string
	empty  bool // it is written as nothing, {} or []
}

func indentOf(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " "))]
}

// silent reports a line without content: blank, or a comment.
func silent(line string) bool {
	t := strings.TrimSpace(line)
	return t == "" || strings.HasPrefix(t, "#")
}

// isKey reports a line that begins with a key, and returns what follows it.
func isKey(line, key string) (rest string, ok bool) {
	for _, form := range []string{key, `"` + key + `"`, `'` + key + `'`} {
		if rest, ok = strings.CutPrefix(line, form+":"); ok {
			if rest = strings.TrimRight(rest, "\r\n"); rest == "" || rest[0] == ' ' {
				value, _, _ := strings.Cut(rest, " #")
				return strings.TrimSpace(value), true
			}
		}
	}
	return "", false
}

// list finds the list; key is -1 when there is none.
func (s *yamlSheet) list() (yamlList, error) {
	l := yamlList{lines: strings.SplitAfter(ended(s.body), "\n"), key: -1, indent: "  "}
	if s.at.List {
		l.indent = ""
	}
	l.lines = l.lines[:len(l.lines)-1] // behind the last line break is nothing
	content := false
	for i, line := range l.lines {
		if strings.HasPrefix(line, "---") && content {
			return l, errShape // a second document
		}
		content = content || !silent(line)
		value, ok := isKey(line, s.at.Keys[0])
		if !ok {
			continue
		}
		if !slices.Contains([]string{"", "{}", "[]", "null", "~"}, value) {
			return l, errShape
		}
		l.key, l.end, l.empty = i, i+1, true
		break
	}
	if l.key < 0 {
		return l, nil
	}
	for i := l.key + 1; i < len(l.lines); i++ {
		line := l.lines[i]
		if silent(line) {
			continue
		}
		if indentOf(line) == "" && !(s.at.List && strings.HasPrefix(line, "-")) {
			break
		}
		if l.empty {
			l.indent, l.empty = indentOf(line), false
		}
		l.end = i + 1
	}
	return l, nil
}

// item finds the lines of an entry.
func (s *yamlSheet) item(l yamlList, name string) (from, to int) {
	from = -1
	for i := l.key + 1; l.key >= 0 && i < l.end; i++ {
		line := l.lines[i]
		if silent(line) || indentOf(line) != l.indent {
			continue
		}
		if from >= 0 {
			return from, s.lastOf(l, from, i)
		}
		if s.begins(l, i, name) {
			from = i
		}
	}
	return from, s.lastOf(l, from, l.end)
}

// lastOf is the end of an entry, without what belongs to the one behind it.
func (s *yamlSheet) lastOf(l yamlList, from, to int) int {
	for to > from+1 && from >= 0 && silent(l.lines[to-1]) {
		to--
	}
	return to
}

func (s *yamlSheet) begins(l yamlList, i int, name string) bool {
	line := strings.TrimPrefix(l.lines[i], l.indent)
	if !s.at.List {
		_, ok := isKey(line, name)
		return ok
	}
	if !strings.HasPrefix(line, "-") {
		return false
	}
	to := i + 1
	for to < l.end && (silent(l.lines[to]) || len(indentOf(l.lines[to])) > len(l.indent)) {
		to++
	}
	tree, err := parseYAML("", []byte(strings.Join(l.lines[i:to], "")))
	items, _ := tree.([]any)
	if err != nil || len(items) != 1 {
		return false
	}
	m, _ := items[0].(map[string]any)
	return m["name"] == name
}

func (s *yamlSheet) Text(name string) (string, bool) {
	l, err := s.list()
	if err != nil {
		return "", false
	}
	from, to := s.item(l, name)
	if from < 0 {
		return "", false
	}
	var b strings.Builder
	for _, line := range l.lines[from:to] {
		b.WriteString(strings.TrimPrefix(line, l.indent))
	}
	return strings.TrimRight(b.String(), "\r\n"), true
}

func (s *yamlSheet) Put(name string, entry Object) error {
	if err := s.Remove(name, false); err != nil {
		return err
	}
	var value any = Object{{name, entry}}
	if s.at.List {
		value = []Object{named(name, entry)}
	}
	text, err := yamlText(value)
	if err != nil {
		return err
	}
	return s.Paste(name, string(text))
}

func (s *yamlSheet) Paste(_, text string) error {
	l, err := s.list()
	if err != nil {
		return err
	}
	br := lineBreak(s.body)
	if l.key < 0 {
		l.lines = append(l.lines, s.at.Keys[0]+":"+br)
		l.end = len(l.lines)
	} else if l.empty {
		l.lines[l.key] = s.at.Keys[0] + ":" + br
	}
	var block []string
	for line := range strings.SplitSeq(strings.TrimRight(AsIn("", text), "\n"), "\n") {
		block = append(block, l.indent+line+br)
	}
	s.body = strings.Join(slices.Insert(l.lines, l.end, block...), "")
	return nil
}

func (s *yamlSheet) Remove(name string, listToo bool) error {
	l, err := s.list()
	if err != nil {
		return err
	}
	from, to := s.item(l, name)
	if from < 0 {
		return nil
	}
	lines := slices.Delete(l.lines, from, to)
	s.body = strings.Join(lines, "")
	rest, err := s.list()
	if err != nil || !rest.empty {
		return err
	}
	if listToo {
		s.body = strings.Join(slices.Delete(rest.lines, rest.key, rest.key+1), "")
		return nil
	}
	nothing := " {}"
	if s.at.List {
		nothing = " []"
	}
	rest.lines[rest.key] = s.at.Keys[0] + ":" + nothing + lineBreak(s.body)
	s.body = strings.Join(rest.lines, "")
	return nil
}

func (s *yamlSheet) Bytes() []byte { return []byte(s.body) }
