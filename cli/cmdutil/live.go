package cmdutil

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Terminal sequences of the live part.
const (
	HoldScreen  = "\x1b[?2026h" // what follows is shown at once, where that is known
	ShowScreen  = "\x1b[?2026l"
	MarksPastes = "\x1b[?2004h"
	PlainPastes = "\x1b[?2004l"
	// Clearing what is left of a line after it was written would do to the eye, but some
	// terminals remember how long a line ever was and wrap the nothing at its end.
	wholeLine = "\x1b[2K"
)

// Live is the end of a terminal that a command redraws while it runs, in place and
// without another screen, so that addresses printed before stay where they can be
// copied. Whatever else is written goes above it. Safe for use by several goroutines.
//
// Lines are never wider than the terminal, so none wraps by itself. When it gets
// narrower, lines drawn before do wrap, in every terminal that reflows: how many rows
// they take then is counted, and all of them are drawn over.
type Live struct {
	Out  io.Writer
	Size func() (columns, rows int)

	mu    sync.Mutex // guards what follows
	open  bool
	wide  []int  // columns of each line drawn
	drawn string // what was written last
	rest  []byte // of what was written above: a line that has not ended
}

// Draw replaces the live part with the lines that make returns for the size of the
// terminal. The cursor stays so many columns before the end of the last one.
func (l *Live) Draw(make func(columns, rows int) (lines []string, before int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cols, rows := l.Size()
	lines, before := make(cols, rows)
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(wholeLine + line)
	}
	b.WriteString(ClearBelow)
	if before > 0 {
		fmt.Fprintf(&b, "\x1b[%dD", before)
	}
	if l.open && b.String() == l.drawn {
		return
	}
	fmt.Fprint(l.Out, HoldScreen, l.top(cols), b.String(), ShowScreen)
	l.open, l.drawn, l.wide = true, b.String(), l.wide[:0]
	for _, line := range lines {
		l.wide = append(l.wide, TextWidth(Plain(line)))
	}
	if n := len(l.wide); n > 0 {
		l.wide[n-1] -= before // only what is before the cursor counts for the way up
	}
}

// height is how many rows the live part takes at a width.
func (l *Live) height(cols int) (rows int) {
	for _, w := range l.wide {
		rows += max(1, (w+cols-1)/cols)
	}
	return rows
}

// top moves the cursor to where the live part begins.
func (l *Live) top(cols int) string {
	if n := l.height(cols); n > 1 {
		return fmt.Sprintf("\r\x1b[%dA", n-1)
	}
	return "\r"
}

// wipe leaves the live part empty and the cursor where it began. Row by row: some
// terminals keep a screen that is cleared in their history.
func (l *Live) wipe(cols int) string {
	rows := strings.TrimSuffix(strings.Repeat(wholeLine+"\r\n", l.height(cols)), "\r\n")
	return l.top(cols) + rows + ClearBelow + l.top(cols)
}

// Write prints above the live part. A line appears when it has ended.
func (l *Live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		return l.Out.Write(p)
	}
	l.rest = append(l.rest, p...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	l.above(string(l.rest[:end]))
	l.rest = append(l.rest[:0], l.rest[end:]...)
	return len(p), nil
}

// above needs mu.
func (l *Live) above(text string) {
	cols, _ := l.Size()
	fmt.Fprint(l.Out, HoldScreen, l.wipe(cols), strings.ReplaceAll(text, "\n", "\r\n"), l.drawn, ShowScreen)
}

// End takes the live part away and leaves last in its place. From then on Write
// passes everything on.
func (l *Live) End(last string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		return
	}
	cols, _ := l.Size()
	last += string(l.rest)
	fmt.Fprint(l.Out, l.wipe(cols), strings.ReplaceAll(last, "\n", "\r\n"))
	l.open, l.wide, l.drawn, l.rest = false, nil, "", nil
}

// Plain is a line without the colours that paint gave it.
func Plain(line string) string {
	var b strings.Builder
	for {
		text, rest, found := strings.Cut(line, "\x1b[")
		b.WriteString(text)
		if !found {
			return b.String()
		}
		_, line, _ = strings.Cut(rest, "m")
	}
}

// ClearBelow clears the screen from the cursor on.
const ClearBelow = "\x1b[J"
