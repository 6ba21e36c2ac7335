package docs

import (
	"fmt"
	"strings"
)

// Manual makes a man page of every command, by file name.
func Manual(root Command) map[string]string {
	pages := map[string]string{}
	all := root.All()
	for _, c := range all {
		pages[strings.Join(c.Path, "-")+".1"] = manPage(c, all)
	}
	return pages
}

func manPage(c Command, all []Command) string {
	var b strings.Builder
	name := strings.Join(c.Path, "-")
	short := c.Short
	if short == "" {
		short = "One host for all your MCP servers"
	}
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"usher\" \"usher manual\"\n", strings.ToUpper(name))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(c.Usage))
	b.WriteString(".SH DESCRIPTION\n")
	for i, para := range strings.Split(c.About, "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(roff(para) + "\n")
	}
	manVerbatim(&b, "OPTIONS", c.Flags)
	manVerbatim(&b, "COMMON OPTIONS", c.Global)
	manVerbatim(&b, "EXAMPLES", c.Examples)
	if len(c.Path) == 1 {
		manVerbatim(&b, "EXIT STATUS", []string{
			"0    done", "1    failed, or the tool answered with an error", "2    wrong usage",
			"10   a person must act: log in, approve", "11   denied, changed since it was pinned, or out of budget",
		})
	}
	b.WriteString(".SH SEE ALSO\n" + roff(strings.Join(seeAlso(c, all), ", ")) + "\n")
	return b.String()
}

// seeAlso names the parent and the children, and for those without either the
// program itself.
func seeAlso(c Command, all []Command) []string {
	var out []string
	for _, o := range all {
		parent := len(o.Path) == len(c.Path)-1 && strings.HasPrefix(c.Name(), o.Name()+" ")
		child := len(o.Path) == len(c.Path)+1 && strings.HasPrefix(o.Name(), c.Name()+" ")
		if parent || child {
			out = append(out, strings.Join(o.Path, "-")+"(1)")
		}
	}
	return out
}

func manVerbatim(b *strings.Builder, head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, ".SH %s\n.nf\n", head)
	for _, l := range unindent(lines) {
		b.WriteString(roff(l) + "\n")
	}
	b.WriteString(".fi\n")
}

// roff keeps text from being taken for requests of the formatter.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
