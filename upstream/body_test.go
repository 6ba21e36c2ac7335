package upstream

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadBounded(t *testing.T) {
	t.Parallel()
	const limit = 5 * lastPart
	text := bytes.Repeat([]byte("0123456789abcdef"), (limit+16)/16)
	for _, size := range []int{0, 1, firstPart - 1, firstPart, firstPart + 1, 3*firstPart + 1, lastPart, lastPart + 1, 3*lastPart + 7, limit} {
		for name, announced := range map[string]int64{"announced": int64(size), "unknown": -1} {
			got, err := readBounded(iotest.HalfReader(bytes.NewReader(text[:size])), announced, limit)
			if err != nil || !bytes.Equal(got, text[:size]) {
				t.Errorf("%d bytes, %s: %d bytes, %v", size, name, len(got), err)
			}
		}
	}
	// What was handed out must not change when the pool lends its parts again.
	first, err := readBounded(bytes.NewReader(text[:3*lastPart]), -1, limit)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readBounded(strings.NewReader(strings.Repeat("x", 3*lastPart)), -1, limit); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, text[:3*lastPart]) {
		t.Error("a later body wrote into an earlier one")
	}
}

func TestReadBoundedRefuses(t *testing.T) {
	t.Parallel()
	const limit = 2 * lastPart
	for _, c := range []struct {
		name      string
		r         io.Reader
		announced int64
		want      error
	}{
		{"announced too large", strings.NewReader(""), limit + 1, ErrTooLarge},
		{"too large", strings.NewReader(strings.Repeat("x", limit+1)), -1, ErrTooLarge},
		{"larger than announced", strings.NewReader(strings.Repeat("x", limit+1)), lastPart + 1, ErrTooLarge},
		{"cut short", strings.NewReader("x"), 2, io.ErrUnexpectedEOF},
		{"large, cut short", strings.NewReader(strings.Repeat("x", lastPart+1)), lastPart + 2, io.ErrUnexpectedEOF},
		{"broken", iotest.ErrReader(io.ErrClosedPipe), -1, io.ErrClosedPipe},
	} {
		if _, err := readBounded(c.r, c.announced, limit); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
