package cmdutil

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestLineEditor(t *testing.T) {
	const a, b = "http://127.0.0.1:7/callback?code=secret&state=1", "https://x.example/callback?code=hidden"
	tests := []struct {
		name  string
		typed []string // as it comes from the terminal
		lines []string
		shown string
		leave bool
	}{
		{"nothing", nil, nil, "", false},
		{"an address", []string{a + "\r"}, []string{a}, "", false},
		{"in parts", []string{a[:10], a[10:30], a[30:] + "\n"}, []string{a}, "", false},
		{"not finished", []string{a}, nil, "http://127.0.0.1:7/callback?… (47 characters)", false},
		{"a bare code", []string{"secret"}, nil, "••••••", false},
		{"a long code", []string{strings.Repeat("x", 300)}, nil, strings.Repeat("•", 12), false},
		{"the beginning of one", []string{"http:"}, nil, "http:", false},
		{"empty lines", []string{"\r\r \r"}, nil, "", false},
		{"corrected", []string{"ab\x7fc\b\x7f\x7fé\x7fx\r"}, []string{"x"}, "", false},
		{"one word taken back", []string{"one two \x17three\r"}, []string{"one three"}, "", false},
		{"all taken back", []string{"one two\x15x\r"}, []string{"x"}, "", false},
		{"marked", []string{"\x1b[200~" + a + "\x1b[201~", "\r"}, []string{a}, "", false},
		{"marked, wrapped by a window", []string{"\x1b[200~" + a[:20] + "\r\n  " + a[20:] + "\n\x1b[201~\r"}, []string{a}, "", false},
		{"marked, two of them", []string{"\x1b[200~" + a + "\r" + b + "\x1b[201~\r"}, []string{a, b}, "", false},
		{"marks in parts", []string{"\x1b", "[20", "0~x\ry", "\x1b[201", "~\r"}, []string{"xy"}, "", false},
		{"keys that do nothing", []string{"a\x1b[A\x1b[1;5C\x1bOP\x1bxb\r"}, []string{"ab"}, "", false},
		{"controls within a paste", []string{"\x1b[200~a\x03\x15b\x1b[201~\r"}, []string{"ab"}, "", false},
		{"leaves", []string{"abc\x03def\r"}, nil, "•••", true},
		{"end of input", []string{"\x04"}, nil, "", true},
		{"end of input while typing", []string{"a\x04\r"}, []string{"a"}, "", false},
		{"what a terminal would act on", []string{"http://x/\u202eb"}, nil, `http://x/\u202eb`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var e LineEditor
			var lines []string
			leave := false
			for _, p := range tt.typed {
				got, left := e.Feed([]byte(p))
				lines, leave = append(lines, got...), leave || left
			}
			if diff := cmp.Diff(tt.lines, lines); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if got := e.Shown(); got != tt.shown || leave != tt.leave {
				t.Errorf("shown %q, leave %v; want %q, %v", got, leave, tt.shown, tt.leave)
			}
		})
	}
}

// FuzzLineEditor feeds whatever a terminal may send: nothing of it reaches the screen
// that a terminal would act on, and it stays bounded.
func FuzzLineEditor(f *testing.F) {
	f.Add([]byte("http://127.0.0.1/callback?code=x\r"), 3)
	f.Add([]byte("\x1b[200~a\nb\x1b[201~\r\x1b[99999999999999999999"), 1)
	f.Add([]byte("\xff\xfe\x1b[2J\x7f\x7f"), 2)
	f.Fuzz(func(t *testing.T, p []byte, at int) {
		var e LineEditor
		cut := min(max(at, 0), len(p))
		for _, part := range [][]byte{p[:cut], p[cut:]} {
			lines, _ := e.Feed(part)
			for _, line := range lines {
				if strings.TrimSpace(line) == "" || strings.ContainsAny(line, "\r\n\x1b") {
					t.Errorf("line %q", line)
				}
			}
			if shown := e.Shown(); strings.ContainsFunc(shown, IsHostile) || !utf8.ValidString(shown) {
				t.Errorf("shown %q", shown)
			}
		}
		if len(e.text) > MaxPaste || len(e.escape) > 16 {
			t.Errorf("%d and %d bytes are kept", len(e.text), len(e.escape))
		}
	})
}
