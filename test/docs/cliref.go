package docs

import (
	"fmt"
	"strings"
)

const cliHead = `# Commands

<!-- This page is generated: make docs -->

Data goes to standard output, words to standard error. With ` + "`--json`" + ` standard
output is JSON and nothing else; its shapes are in [cli-json.md](cli-json.md).

## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | failed, or the tool answered with an error |
| 2 | wrong usage |
| 10 | a person must act: log in, approve |
| 11 | denied, changed since it was pinned, or out of budget |
| 130 | interrupted |

`

// cliPage writes docs/cli.md.
func cliPage(root Command) string {
	var b strings.Builder
	b.WriteString(cliHead)
	b.WriteString("## Flags of every command\n\n")
	writeFence(&b, "", unindent(root.Flags))
	b.WriteString("## Overview\n\n")
	writeOverview(&b, root)
	for _, c := range root.All()[1:] {
		writeCommand(&b, c)
	}
	return b.String()
}

func writeOverview(b *strings.Builder, root Command) {
	group := ""
	var rows [][]string
	flush := func() {
		if len(rows) > 0 {
			fmt.Fprintf(b, "%s:\n\n%s\n", group, table([]string{"command", "what it does"}, rows))
		}
		rows = nil
	}
	for _, c := range root.Children {
		if c.Group != group {
			flush()
			group = c.Group
		}
		rows = append(rows, []string{fmt.Sprintf("[%s](#%s)", c.Name(), anchor(c.Name())), c.Short})
	}
	flush()
}

func writeCommand(b *strings.Builder, c Command) {
	fmt.Fprintf(b, "%s %s\n\n", strings.Repeat("#", len(c.Path)), c.Name())
	fmt.Fprintf(b, "%s\n\n", prose(c.About))
	writeFence(b, "", []string{c.Usage})
	if _, other, ok := strings.Cut(c.Aliases, ", "); ok {
		fmt.Fprintf(b, "Also: `%s`\n\n", other)
	}
	if len(c.Children) > 0 {
		var rows [][]string
		for _, k := range c.Children {
			rows = append(rows, []string{fmt.Sprintf("[%s](#%s)", k.Name(), anchor(k.Name())), k.Short})
		}
		b.WriteString(table([]string{"command", "what it does"}, rows) + "\n")
	}
	if flags := ownFlags(c.Flags); len(flags) > 0 {
		writeFence(b, "", unindent(flags))
	}
	if len(c.Examples) > 0 {
		b.WriteString("Examples:\n\n")
		writeFence(b, "sh", unindent(c.Examples))
	}
}

// ownFlags leaves out what every command has.
func ownFlags(flags []string) []string {
	var out []string
	for _, f := range flags {
		if !strings.Contains(f, "-h, --help ") {
			out = append(out, f)
		}
	}
	return out
}

func writeFence(b *strings.Builder, lang string, lines []string) {
	fmt.Fprintf(b, "```%s\n%s\n```\n\n", lang, strings.Join(lines, "\n"))
}

// unindent takes away the blanks that all lines begin with.
func unindent(lines []string) []string {
	least := -1
	for _, l := range lines {
		if n := len(l) - len(strings.TrimLeft(l, " ")); least < 0 || n < least {
			least = n
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l[max(least, 0):]
	}
	return out
}

// prose keeps characters of a help text from being taken for Markdown.
func prose(text string) string {
	return strings.NewReplacer("*", `\*`, "<", `\<`, "_", `\_`, "`", "\\`").Replace(text)
}

// anchor is the fragment that a heading gets.
func anchor(heading string) string {
	keep := func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
			return r
		}
		return -1
	}
	return strings.Map(keep, strings.ToLower(heading))
}
