package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// Block is a fenced block, or a setup comment, of a page.
type Block struct {
	Lang  string            // "console", "json", "setup", …
	Attrs map[string]string // what follows the language: words, and one key=value
	Lines []string          // without the fences
	First int               // number of the first of Lines, from 1
}

// Text is the block as one string that ends with a line break.
func (b Block) Text() string { return strings.Join(b.Lines, "\n") + "\n" }

var fence = regexp.MustCompile("^```([a-z]*)(.*)$")

// Blocks finds the fenced blocks and the setup comments of a page, in order.
func Blocks(page string) []Block {
	var out []Block
	var open *Block
	end := ""
	for i, line := range strings.Split(page, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open != nil && line == end:
			out = append(out, *open)
			open = nil
		case open != nil:
			open.Lines = append(open.Lines, line)
		case line == "<!-- setup":
			open, end = &Block{Lang: "setup", First: i + 2}, "-->"
		case m != nil:
			open, end = &Block{Lang: m[1], Attrs: attributes(m[2]), First: i + 2}, "```"
		}
	}
	return out
}

// attributes reads words, and after them one key=value, whose value may have blanks.
func attributes(text string) map[string]string {
	out := map[string]string{}
	for text = strings.TrimSpace(text); text != ""; {
		word, rest, _ := strings.Cut(text, " ")
		if key, _, ok := strings.Cut(word, "="); ok {
			out[key] = text[len(key)+1:]
			break
		}
		out[word], text = "", strings.TrimSpace(rest)
	}
	return out
}

// fill replaces what stands between the marks of name.
func fill(page, name, text string) (string, error) {
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, ok := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("the page has no marks for %q", name)
	}
	return before + begin + text + end + after, nil
}

// table writes a Markdown table.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}
