package terminal

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"
)

// Frame is a screen that is seen for a while.
type Frame struct {
	Coloured string // as [Screen.Coloured] gives it
	Hold     time.Duration
}

// Sizes of a character, and colours, of a drawn terminal.
const (
	charWidth, lineHeight = 8.43, 20
	margin, barHeight     = 18, 36
)

const svgStyle = `text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d7dae0;white-space:pre}` +
	`.d{fill:#8b919d}.r{fill:#ff8b85}.g{fill:#57d28f}.y{fill:#f0b35a}.b{font-weight:700}` +
	`.f{visibility:hidden;animation-duration:%gs;animation-iteration-count:infinite;animation-timing-function:step-end}`

// SVG draws what was seen as a picture that moves: one frame after the other, again
// and again. It loads nothing and runs no script.
func SVG(columns, rows int, frames []Frame) string {
	width := int(float64(columns)*charWidth) + 2*margin
	height := rows*lineHeight + barHeight + margin
	total := 0.0
	for _, f := range frames {
		total += f.Hold.Seconds()
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" role="img" aria-label="usher in a terminal"><style>`, width, height, width)
	fmt.Fprintf(&b, svgStyle, total)
	at := 0.0
	for i, f := range frames {
		from, to := 100*at/total, 100*(at+f.Hold.Seconds())/total
		at += f.Hold.Seconds()
		fmt.Fprintf(&b, `@keyframes k%d{0%%{visibility:hidden}%.2f%%{visibility:visible}`, i, from)
		if i < len(frames)-1 {
			fmt.Fprintf(&b, `%.2f%%{visibility:hidden}`, to)
		}
		fmt.Fprintf(&b, `}.f%d{animation-name:k%d}`, i, i)
	}
	// Whoever wants no movement sees how it ends.
	fmt.Fprintf(&b, `@media (prefers-reduced-motion:reduce){.f{animation:none}.f%d{visibility:visible}}`, len(frames)-1)
	b.WriteString("</style>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="10" fill="#16181d"/><circle cx="22" cy="19" r="6" fill="#ff5f57"/><circle cx="42" cy="19" r="6" fill="#febc2e"/><circle cx="62" cy="19" r="6" fill="#28c840"/>`+"\n", width, height)
	for i, f := range frames {
		fmt.Fprintf(&b, `<g class="f f%d">`+"\n", i)
		for y, line := range strings.Split(f.Coloured, "\n") {
			if text := spans(line); text != "" {
				fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", margin, barHeight+(y+1)*lineHeight-5, text)
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// spans turns one line with SGR sequences into text with classes.
func spans(line string) string {
	var b strings.Builder
	class := ""
	write := func(text string) {
		if text == "" {
			return
		}
		var esc strings.Builder
		_ = xml.EscapeText(&esc, []byte(text)) // a builder takes everything
		if class == "" {
			b.WriteString(esc.String())
			return
		}
		fmt.Fprintf(&b, `<tspan class="%s">%s</tspan>`, class, esc.String())
	}
	for {
		text, rest, found := strings.Cut(line, "\x1b[")
		write(text)
		if !found {
			return b.String()
		}
		code, after, _ := strings.Cut(rest, "m")
		class = sgrClass(class, code)
		line = after
	}
}

// sgrClass is the class of text after an SGR sequence.
func sgrClass(class, code string) string {
	known := map[string]string{"1": "b", "2": "d", "31": "r", "32": "g", "33": "y"}
	for part := range strings.SplitSeq(code, ";") {
		switch {
		case known[part] != "":
			class = known[part]
		case part == "" || part == "0" || part == "22" || part == "39" && class != "d":
			class = ""
		}
	}
	return class
}
