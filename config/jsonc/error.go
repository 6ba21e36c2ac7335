package jsonc

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/usher-mcp/usher/config/template"
	"github.com/usher-mcp/usher/internal/visible"
)

// Error is a mistake in a file, with the place where it stands. Credentials in
// the excerpt are starred out.
type Error struct {
	File    string
	Line    int // from 1; 0 when the mistake has no place in the file
	Column  int // from 1, in characters
	Msg     string
	Excerpt string // the line and a caret under the column, or empty
	Hint    string // what to do about it, or empty
	Err     error  // the cause, or nil

	// Key is the key that stands twice in an object, or empty.
	Key string
}

// Error gives one line, as compilers do: file:line:column: message.
func (e *Error) Error() string {
	msg := e.Msg
	if e.Hint != "" {
		msg += " (" + e.Hint + ")"
	}
	return place(e.File, e.Line, e.Column) + msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Detail gives the message, the excerpt with its caret and the hint, each on
// lines of its own, without a final newline.
func (e *Error) Detail() string {
	lines := []string{place(e.File, e.Line, e.Column) + e.Msg}
	if e.Excerpt != "" {
		lines = append(lines, e.Excerpt)
	}
	if e.Hint != "" {
		lines = append(lines, e.Hint)
	}
	return strings.Join(lines, "\n")
}

// Warning is something that was ignored or looks wrong but does no harm.
type Warning struct {
	File   string
	Line   int
	Column int
	Msg    string
}

// String gives one line: file:line:column: message.
func (w Warning) String() string { return place(w.File, w.Line, w.Column) + w.Msg }

func place(file string, line, column int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return file + ": "
	}
	return fmt.Sprintf("%s:%d:%d: ", file, line, column)
}

// Source is the text of a file, for finding places in it.
type Source struct {
	File string // the path
	Text []byte
}

// ErrorAt makes an Error that points at a byte offset.
func (s *Source) ErrorAt(offset int, format string, args ...any) *Error {
	line, column := s.Position(offset)
	return &Error{
		File: s.File, Line: line, Column: column,
		Msg:     fmt.Sprintf(format, args...),
		Excerpt: s.excerpt(offset),
	}
}

// WarningAt makes a Warning that points at a byte offset.
func (s *Source) WarningAt(offset int, format string, args ...any) Warning {
	line, column := s.Position(offset)
	return Warning{File: s.File, Line: line, Column: column, Msg: fmt.Sprintf(format, args...)}
}

// Position counts lines and characters from 1.
func (s *Source) Position(offset int) (line, column int) {
	offset = min(max(offset, 0), len(s.Text))
	before := s.Text[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])
}

// excerptWidth is how much of a long line is shown, half of it on either side
// of the caret.
const excerptWidth = 100

// excerptReach is how far around the caret credentials are looked for.
const excerptReach = 4096

// excerpt shows the line around offset with a caret below. Characters a
// terminal would act on are replaced, one for one, so that the caret fits.
func (s *Source) excerpt(offset int) string {
	offset = min(max(offset, 0), len(s.Text))
	start := bytes.LastIndexByte(s.Text[:offset], '\n') + 1
	end := len(s.Text)
	if i := bytes.IndexByte(s.Text[offset:], '\n'); i >= 0 {
		end = offset + i
	}
	// Of a file that is all one line only the surroundings matter.
	start, end = max(start, offset-excerptReach), min(end, offset+excerptReach)
	caret := utf8.RuneCount(s.Text[start:offset])
	// Star out credentials before anything is cut, or half a token would show.
	runes := []rune(strings.TrimRight(template.StarSecrets(string(s.Text[start:end])), "\r"))
	from := 0
	if len(runes) > excerptWidth {
		from = max(0, min(caret-excerptWidth/2, len(runes)-excerptWidth))
		runes = runes[from:min(len(runes), from+excerptWidth)]
	}
	for i, r := range runes {
		runes[i] = printable(r)
	}
	line, _ := s.Position(offset)
	number := fmt.Sprintf("%3d", line)
	return fmt.Sprintf("%s | %s\n%s | %s^", number, strings.TrimRight(string(runes), " "),
		strings.Repeat(" ", len(number)), strings.Repeat(" ", caret-from))
}

func printable(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case r == utf8.RuneError, !unicode.IsPrint(r), visible.Invisible(r):
		return '·'
	}
	return r
}
