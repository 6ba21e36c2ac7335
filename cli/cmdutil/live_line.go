package cmdutil

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// LineEditor is the line that a person types or pastes into while the terminal gives
// every key at once. The terminal's own line would do less: it takes 1,024 characters
// on some systems, which is less than some answers have, and it would show the answer,
// which is nobody's business.
type LineEditor struct {
	text    []byte
	escape  []byte // a key that is more than one byte, as far as it came
	pasting bool   // between the terminal's marks of a paste
}

// Marks of a paste, without the leading escape.
const (
	pasteBegins = "[200~"
	pasteEnds   = "[201~"
)

// Feed takes what came from the terminal. It returns the lines that were finished, and
// whether the person wants to leave.
func (e *LineEditor) Feed(p []byte) (lines []string, leave bool) {
	for _, c := range p {
		switch {
		case len(e.escape) > 0:
			e.key(c)
		case c == 0x1b:
			e.escape = append(e.escape, c)
		case c == '\r' || c == '\n':
			if e.pasting {
				e.add('\n')
				continue
			}
			lines = append(lines, e.take()...)
		case e.pasting:
			if c >= ' ' {
				e.add(c)
			}
		case c == 'C'-'@':
			return lines, true
		case c == 'D'-'@' && len(e.text) == 0:
			return lines, true
		case c == 'U'-'@':
			e.text = e.text[:0]
		case c == 'W'-'@':
			e.text = e.text[:bytes.LastIndexByte(bytes.TrimRight(e.text, " \n"), ' ')+1]
		case c == 0x7f || c == '\b':
			_, n := utf8.DecodeLastRune(e.text)
			e.text = e.text[:len(e.text)-n]
		case c >= ' ':
			e.add(c)
		}
	}
	return lines, false
}

func (e *LineEditor) add(c byte) {
	if len(e.text) < MaxPaste {
		e.text = append(e.text, c)
	}
}

// key goes on with a key that began with escape; none of them does anything here but
// the marks of a paste.
func (e *LineEditor) key(c byte) {
	if len(e.escape) == 1 && c != '[' && c != 'O' {
		e.escape = nil
		return
	}
	e.escape = append(e.escape, c)
	if len(e.escape) == 2 || c < 0x40 && len(e.escape) < 16 {
		return
	}
	switch string(e.escape[1:]) {
	case pasteBegins:
		e.pasting = true
	case pasteEnds:
		e.pasting = false
	}
	e.escape = nil
}

// take ends the line. One paste may hold several addresses, each on a line of its
// own; other line breaks are those of a window that an address did not fit into.
func (e *LineEditor) take() (lines []string) {
	for part := range strings.SplitSeq(string(e.text), "\n") {
		part = strings.TrimSpace(part)
		switch {
		case part == "":
		case len(lines) == 0 || isAddress(part):
			lines = append(lines, part)
		default:
			lines[len(lines)-1] += part
		}
	}
	e.text = e.text[:0]
	return lines
}

func isAddress(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// Shown is the line as it appears: an address up to its secrets, dots for the rest.
func (e *LineEditor) Shown() string {
	const enough = 12 // dots
	text := string(bytes.ToValidUTF8(e.text, []byte("?")))
	begun := strings.HasPrefix("https://", text) || strings.HasPrefix("http://", text)
	if !isAddress(text) && !begun {
		return strings.Repeat("•", min(utf8.RuneCountInString(text), enough))
	}
	if head, _, found := strings.Cut(text, "?"); found {
		return CleanLine(fmt.Sprintf("%s?… (%d characters)", head, utf8.RuneCountInString(text)))
	}
	return CleanLine(text)
}

// MaxPaste bounds a pasted line.
const MaxPaste = 64 << 10
