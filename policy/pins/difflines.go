package pins

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/usher-mcp/usher/internal/lookalike"
)

// visible returns s with escapes for what would not show; with all, for every
// character outside ASCII.
func visible(s string, all bool) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case lookalike.Hidden(r), all && r >= utf8.RuneSelf:
			fmt.Fprintf(&b, `\u{%04x}`, r)
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}

// DiffLine is a line that was taken out, put in or left as it was.
type DiffLine struct {
	Sign rune // '-', '+' or ' '
	Text string
}

// maxDiffCells bounds the table of a line diff: 256 lines that differ from 256 others,
// in whatever place. More than that is shown as replaced as a whole.
const maxDiffCells = 1 << 16

// diffLines is the shortest way from old to new in whole lines, with up to two
// unchanged lines around each change.
func diffLines(old, new []string) []DiffLine {
	head := 0
	for head < len(old) && head < len(new) && old[head] == new[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(new)-head && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	var out []DiffLine
	keep := func(lines []string) {
		for _, l := range lines {
			out = append(out, DiffLine{' ', l})
		}
	}
	keep(old[:head])
	out = append(out, middle(old[head:len(old)-tail], new[head:len(new)-tail])...)
	keep(old[len(old)-tail:])
	return nearChanges(out)
}

func middle(old, new []string) []DiffLine {
	if len(old)*len(new) > maxDiffCells {
		return replaced(old, new)
	}
	was, is := lineNumbers(old, new)
	// common[i][j] is the length of the longest common part of old[i:] and new[j:].
	common := make([][]int32, len(old)+1)
	for i := range common {
		common[i] = make([]int32, len(new)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(new) - 1; j >= 0; j-- {
			if was[i] == is[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out []DiffLine
	i, j := 0, 0
	for i < len(old) && j < len(new) {
		switch {
		case was[i] == is[j]:
			out = append(out, DiffLine{' ', old[i]})
			i++
			j++
		case common[i+1][j] >= common[i][j+1]:
			out = append(out, DiffLine{'-', old[i]})
			i++
		default:
			out = append(out, DiffLine{'+', new[j]})
			j++
		}
	}
	return append(out, replaced(old[i:], new[j:])...)
}

// lineNumbers gives equal lines the same number, so that comparing two does not depend
// on how long they are.
func lineNumbers(old, new []string) (was, is []int32) {
	ids := make(map[string]int32, len(old)+len(new))
	number := func(lines []string) []int32 {
		out := make([]int32, len(lines))
		for i, l := range lines {
			id, ok := ids[l]
			if !ok {
				id = int32(len(ids))
				ids[l] = id
			}
			out[i] = id
		}
		return out
	}
	return number(old), number(new)
}

func replaced(old, new []string) []DiffLine {
	var out []DiffLine
	for _, l := range old {
		out = append(out, DiffLine{'-', l})
	}
	for _, l := range new {
		out = append(out, DiffLine{'+', l})
	}
	return out
}

// nearChanges leaves out unchanged lines that are far from every change.
func nearChanges(lines []DiffLine) []DiffLine {
	const near = 2
	var out []DiffLine
	for i, l := range lines {
		from, to := max(0, i-near), min(len(lines), i+near+1)
		if l.Sign != ' ' || slices.ContainsFunc(lines[from:to], func(o DiffLine) bool { return o.Sign != ' ' }) {
			out = append(out, l)
		}
	}
	return out
}
