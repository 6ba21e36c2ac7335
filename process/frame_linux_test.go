package process

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	long := strings.Repeat("z", 100_000)
	for _, body := range []string{"", "x", "\x00\xff", long} {
		if err := writeFrame(&b, frameSpec, body); err != nil {
			t.Fatal(err)
		}
		kind, got, err := readFrame(&b)
		if kind != frameSpec || got != body || err != nil {
			t.Errorf("read %q %d bytes, %v", kind, len(got), err)
		}
	}
	if err := writeFrame(io.Discard, frameSpec, strings.Repeat("z", maxFrame)); err == nil {
		t.Error("a frame above the limit was written")
	}
	for _, tt := range []struct {
		in   string
		want error
	}{
		{"", io.EOF},
		{"\x00\x00", io.ErrUnexpectedEOF},
		{"\x00\x00\x00\x00", errFrame},
		{"\xff\xff\xff\xff", errFrame},
		{"\x00\x00\x00\x05ab", io.ErrUnexpectedEOF},
	} {
		if _, _, err := readFrame(strings.NewReader(tt.in)); !errors.Is(err, tt.want) {
			t.Errorf("read %q: %v, want %v", tt.in, err, tt.want)
		}
	}
}

func TestSpecRoundTrip(t *testing.T) {
	want := &spec{
		path: "/bin/x", dir: "/d", grace: time.Second, kill: time.Minute,
		argv: []string{"x", "", "\xff\n"}, env: []string{"A=", "B=\xfe="},
	}
	got, err := decodeSpec(want.encode())
	if err != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzDecodeSpec(f *testing.F) {
	f.Add((&spec{path: "/bin/x", dir: "/", argv: []string{"x", "y"}, env: []string{"A=b"}}).encode())
	f.Add("a\x00b\x001\x002\x0099\x00c")
	f.Add("\x00\x00-1\x000\x001\x00x")
	f.Fuzz(func(t *testing.T, body string) {
		s, err := decodeSpec(body)
		if err != nil {
			return
		}
		if len(s.argv) == 0 || s.grace < 0 || s.kill < 0 {
			t.Errorf("accepted %+v", s)
		}
		again, err := decodeSpec(s.encode())
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("%+v became %+v, %v", s, again, err)
		}
	})
}

func TestParseStat(t *testing.T) {
	rest := " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 " // fields 6 to 21
	for _, tt := range []struct {
		line string
		want proc
		ok   bool
	}{
		{"12 (sh) S 7 9" + rest + "345 0 0", proc{pid: 12, ppid: 7, pgid: 9, start: 345}, true},
		{"12 (a) Z 1 (b) Z 7 9" + rest + "345 0", proc{pid: 12, ppid: 7, pgid: 9, start: 345, zombie: true}, true},
		{"12 (new\nline) X 7 9" + rest + "345", proc{pid: 12, ppid: 7, pgid: 9, start: 345, zombie: true}, true},
		{"12 (sh) S 7", proc{}, false},
		{"x (sh) S 7 9" + rest + "345", proc{}, false},
		{"12 )sh( S 7 9" + rest + "345", proc{}, false},
		{"", proc{}, false},
	} {
		got, ok := parseStat([]byte(tt.line))
		if got != tt.want || ok != tt.ok {
			t.Errorf("%q: %+v %v", tt.line, got, ok)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (a) b) S 7 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 345 0 0"))
	f.Add([]byte(") ("))
	f.Fuzz(func(t *testing.T, line []byte) {
		if p, ok := parseStat(line); ok && p.pid <= 0 {
			t.Errorf("accepted pid %d", p.pid)
		}
	})
}
