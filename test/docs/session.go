package docs

import (
	"regexp"
	"strings"
)

// Step is one command of a console block and what it prints.
type Step struct {
	Command string
	Want    []string // nil: anything
	Line    int      // number of the line the command begins in
}

// Steps takes a console block apart.
func Steps(b Block) []Step {
	var out []Step
	for i, line := range b.Lines {
		command, isCommand := strings.CutPrefix(line, "$ ")
		more, goesOn := strings.CutPrefix(line, "> ")
		switch {
		case isCommand:
			out = append(out, Step{Command: command, Line: b.First + i})
		case len(out) == 0:
			out = append(out, Step{Command: "", Want: []string{line}, Line: b.First + i}) // a mistake: nothing prints it
		case goesOn && out[len(out)-1].Want == nil:
			out[len(out)-1].Command += "\n" + more
		default:
			out[len(out)-1].Want = append(out[len(out)-1].Want, line)
		}
	}
	return out
}

var blanks = regexp.MustCompile(`  +`)

// Matches reports whether a command printed what is wanted: … stands for anything
// within a line, and alone on a line for any number of lines. How wide a column is
// makes no difference.
func Matches(want []string, got string) bool {
	var b strings.Builder
	b.WriteString(`\A`)
	for _, line := range want {
		if line == "…" {
			b.WriteString(`(?:[^\n]*\n)*`)
			continue
		}
		line = blanks.ReplaceAllString(strings.TrimRight(line, " "), "  ")
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", `[^\n]*`) + ` *\n`)
	}
	b.WriteString(`\z`)
	if got != "" && !strings.HasSuffix(got, "\n") {
		got += "\n"
	}
	return regexp.MustCompile(b.String()).MatchString(blanks.ReplaceAllString(got, "  "))
}
