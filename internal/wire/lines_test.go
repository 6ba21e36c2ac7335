package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/jsonx"

	"github.com/usher-mcp/usher/mcp"
)

// allLines reads to the end; a line that is too long shows as its first bytes.
func allLines(l *Lines) (out []string, err error) {
	for {
		line, err := l.Next()
		var long *TooLongError
		switch {
		case errors.As(err, &long):
			out = append(out, "too long: "+string(long.Prefix[:3]))
		case err != nil:
			return out, err
		default:
			out = append(out, string(line))
		}
	}
}

func TestLines(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"blank lines", "\n\r\n \t\n\n", nil},
		{"lines", "a\nbb\n", []string{"a", "bb"}},
		{"last line without end", "a\n[1]", []string{"a", "[1]"}},
		{"last line cut off", "a\n[1", []string{"a"}},
		{"carriage returns", "a\r\nb\r\r\nc\rd\n", []string{"a", "b\r", "c\rd"}},
		{"inner space stays", "  a b\t\n", []string{"  a b\t"}},
		{"at the limit", "12345678\n1234567\n", []string{"12345678", "1234567"}},
		{"at the limit with CR", "12345678\r\n", []string{"12345678"}},
		{"at the limit without end", "12345678", []string{"12345678"}},
		{"above the limit", "123456789\na\n", []string{"too long: 123", "a"}},
		{"far above the limit", strings.Repeat("x", 200) + "\na\n", []string{"too long: xxx", "a"}},
		{"above the limit at the end", "a\n" + strings.Repeat("x", 200), []string{"a", "too long: xxx"}},
		{"twice above the limit", strings.Repeat("x", 50) + "\n" + strings.Repeat("y", 50) + "\nz\n", []string{"too long: xxx", "too long: yyy", "z"}},
		{"NUL and bytes that are no UTF-8", "\x00\xff\n", []string{"\x00\xff"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for size := range 3 { // a line in one part, and in several
				l := &Lines{r: bufio.NewReaderSize(iotest.HalfReader(strings.NewReader(tt.in)), 16<<(4*size)), max: 8}
				got, err := allLines(l)
				if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, io.EOF) {
					t.Errorf("%v (-want +got)\n%s", err, diff)
				}
			}
		})
	}
}

func TestLinesTooLong(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":42,"result":"` + strings.Repeat("x", 100_000) + `"}` + "\nnext\n"
	l := NewLines(strings.NewReader(in), 50_000)
	_, err := l.Next()
	var long *TooLongError
	if !errors.As(err, &long) || long.Limit != 50_000 || long.Size <= 50_000 || len(long.Prefix) != prefixLen {
		t.Fatalf("got %v", err)
	}
	if id, ok := mcp.PeekID(long.Prefix); !ok || id != mcp.IntID(42) {
		t.Errorf("the id in the prefix is %v, %v", id, ok)
	}
	if line, err := l.Next(); string(line) != "next" || err != nil {
		t.Errorf("then %q, %v", line, err)
	}
}

// TestLinesReportsAtOnce reads a line that never ends: whoever waits for it must hear
// of it as soon as the limit is passed.
func TestLinesReportsAtOnce(t *testing.T) {
	r := &endless{left: 1 << 20}
	_, err := NewLines(r, 64<<10).Next()
	var long *TooLongError
	if !errors.As(err, &long) || r.left == 0 {
		t.Errorf("got %v with %d bytes left", err, r.left)
	}
}

func TestLinesReaderFails(t *testing.T) {
	boom := errors.New("boom")
	l := NewLines(io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(boom)), 100)
	if line, err := l.Next(); string(line) != "a" || err != nil {
		t.Fatalf("got %q, %v", line, err)
	}
	if line, err := l.Next(); line != nil || !errors.Is(err, boom) {
		t.Errorf("got %q, %v, want what the reader said", line, err)
	}
	l = NewLines(io.MultiReader(strings.NewReader(strings.Repeat("x", 100_000)), iotest.ErrReader(boom)), 100)
	if _, err := l.Next(); err == nil || errors.Is(err, boom) {
		t.Errorf("got %v, want too long first", err)
	}
	if _, err := l.Next(); !errors.Is(err, boom) {
		t.Errorf("got %v, want what the reader said", err)
	}
}

func TestLinesOwnTheirBytes(t *testing.T) {
	l := NewLines(strings.NewReader("first\nother\n"), 100)
	first, _ := l.Next()
	if _, err := l.Next(); err != nil {
		t.Fatal(err)
	}
	if string(first) != "first" {
		t.Errorf("the first line became %q", first)
	}
}

// endless yields left bytes without a line end, then end.
type endless struct {
	left int64
	end  string
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		if e.end == "" {
			return 0, io.EOF
		}
		n := copy(p, e.end)
		e.end = e.end[n:]
		return n, nil
	}
	n := int(min(int64(len(p)), e.left))
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.left -= int64(n)
	return n, nil
}

// allocated returns how many bytes f allocates in all, which bounds what it holds.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func TestFramesBoundMemory(t *testing.T) {
	const limit, slack = 16 << 20, 3 << 20 / 2
	for _, tt := range []struct {
		name string
		size int64
		next func(r io.Reader) (int, error)
		max  int64
	}{
		{"line of 100 MB", 100_000_000, nextLine, limit + slack},
		{"line at the limit", limit, nextLine, 2*limit + slack},
		{"event of 100 MB", 100_000_000, nextEvent, limit + slack},
		{"event at the limit", limit, nextEvent, 2*limit + slack},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := io.MultiReader(strings.NewReader("data:"), &endless{left: tt.size, end: "\n\n"})
			if strings.HasPrefix(tt.name, "line") {
				r = &endless{left: tt.size, end: "\n"}
			}
			var n int
			var err error
			got := allocated(func() { n, err = tt.next(r) })
			var long *TooLongError
			if tooLong := errors.As(err, &long); tooLong != (tt.size > limit) || !tooLong && int64(n) != tt.size {
				t.Fatalf("read %d bytes, %v", n, err)
			}
			if got > tt.max {
				t.Errorf("allocated %d bytes, want at most %d", got, tt.max)
			}
		})
	}
}

func nextLine(r io.Reader) (int, error) {
	l := NewLines(r, 16<<20)
	line, err := l.Next()
	if err != nil {
		if _, rest := l.Next(); !errors.Is(rest, io.EOF) {
			return 0, rest
		}
	}
	return len(line), err
}

func nextEvent(r io.Reader) (int, error) {
	e := NewEvents(r, 16<<20)
	ev, err := e.Next()
	if err != nil {
		if _, rest := e.Next(); !errors.Is(rest, io.EOF) {
			return 0, rest
		}
	}
	return len(ev.Data), err
}

func TestAppendLine(t *testing.T) {
	smuggle := "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"a\":\r\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"y\"}\n}}"
	got := AppendLine([]byte("before\n"), []byte(smuggle))
	lines, _ := allLines(NewLines(bytes.NewReader(got), 1<<20))
	if len(lines) != 2 || lines[0] != "before" {
		t.Fatalf("got %q", lines)
	}
	want, _ := jsonx.Canonical([]byte(smuggle))
	if have, err := jsonx.Canonical([]byte(lines[1])); err != nil || string(have) != string(want) {
		t.Errorf("got %s, %v", have, err)
	}
	if got := string(AppendLine(nil, []byte(`{"a":"\n"}`))); got != `{"a":"\n"}`+"\n" {
		t.Errorf("got %q", got)
	}
}

// FuzzLines holds the reader, in parts of all sizes, against splitting the whole.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"", "a\n[1]", "a\n[1", "a\r\n\r\n b\n", "12345678\r\n123456789\n", "\r\r\r\n", strings.Repeat("x", 40) + "\ny\n", "123456789012345\r\n"} {
		f.Add([]byte(s), uint8(8), uint8(0))
		f.Add([]byte(s), uint8(16), uint8(5))
	}
	f.Add([]byte("123456789012345\r\n123456789012345\r6\n"), uint8(15), uint8(0)) // CR at the edge of the buffer
	f.Fuzz(func(t *testing.T, in []byte, limit, size uint8) {
		var want []string
		for line := range bytes.Lines(in) {
			text, ended := bytes.CutSuffix(line, []byte("\n"))
			text = bytes.TrimSuffix(text, []byte("\r"))
			switch {
			case len(text) > int(limit):
				want = append(want, "too long")
			case len(bytes.Trim(text, " \t\r\n")) > 0 && (ended || jsonx.Valid(text) == nil):
				want = append(want, string(text))
			}
		}
		l := &Lines{r: bufio.NewReaderSize(bytes.NewReader(in), 16+int(size)), max: int64(limit)}
		var got []string
		for {
			line, err := l.Next()
			var long *TooLongError
			if errors.As(err, &long) {
				got = append(got, "too long")
				if long.Size <= long.Limit || !bytes.Contains(in, long.Prefix) {
					t.Fatalf("%q: %+v", in, long)
				}
				continue
			}
			if err != nil {
				break
			}
			got = append(got, string(line))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q, limit %d (-want +got)\n%s", in, limit, diff)
		}
	})
}
