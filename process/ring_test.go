package process

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func texts(lines []Line) []string {
	var out []string
	for _, l := range lines {
		text := l.Text
		if l.Partial {
			text += "…"
		}
		out = append(out, text)
	}
	return out
}

func TestRingLines(t *testing.T) {
	long := strings.Repeat("y", maxLine)
	tests := []struct {
		name    string
		limit   int
		writes  []string
		want    []string
		dropped uint64
	}{
		{"nothing", 0, nil, nil, 0},
		{"lines", 0, []string{"a\nb\n"}, []string{"a", "b"}, 0},
		{"split over writes", 0, []string{"he", "llo\nwor", "ld\n"}, []string{"hello", "world"}, 0},
		{"carriage return", 0, []string{"a\r\nb\rc\r", "\n"}, []string{"a", "b\rc"}, 0},
		{"unfinished", 0, []string{"a\npassword: "}, []string{"a", "password: …"}, 0},
		{"empty lines", 0, []string{"\n\n"}, []string{"", ""}, 0},
		{"not text", 0, []string{"\xff\x00\x1b[2J\n"}, []string{"\xff\x00\x1b[2J"}, 0},
		{"exactly the longest", 0, []string{long, "\n"}, []string{long}, 0},
		{"cut", 0, []string{long + "yz\n"}, []string{long + "…", "yz"}, 0},
		{"forgets the oldest", 3 * (lineCost + 2), []string{"aa\nbb\ncc\ndd\nee\n"}, []string{"cc", "dd", "ee"}, 6},
		{"keeps one line", 1, []string{"aa\nbb\n"}, []string{"b"}, 4}, // cut to single letters
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewRing(tt.limit)
			for _, w := range tt.writes {
				if n, err := r.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			if diff := cmp.Diff(tt.want, texts(r.Lines())); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if got := r.Dropped(); got != tt.dropped {
				t.Errorf("dropped %d, want %d", got, tt.dropped)
			}
		})
	}
}

// Lines cost memory even when they are empty.
func TestRingBoundsEmptyLines(t *testing.T) {
	r := NewRing(DefaultStderrBytes)
	r.Write([]byte(strings.Repeat("\n", 1<<20)))
	if n := len(r.Lines()); n > DefaultStderrBytes/lineCost {
		t.Errorf("holds %d lines", n)
	}
	if n := cap(r.lines); n > 8*DefaultStderrBytes/lineCost {
		t.Errorf("reserves %d lines", n)
	}
}

func TestRingFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRing(3 * (lineCost + 8))
		r.Write([]byte("old\nunfin"))
		var got []string
		var wg sync.WaitGroup
		wg.Go(func() {
			for line := range r.Follow(t.Context()) {
				got = append(got, fmt.Sprint(line.Seq, line.Text))
			}
		})
		synctest.Wait()
		r.Write([]byte("ished\n"))
		synctest.Wait()
		// Far more than the ring holds, in one go: the middle is missed.
		r.Write([]byte("1\n2\n3\n4\n5\n6\n"))
		synctest.Wait()
		r.Write([]byte("end"))
		r.Close()
		r.Close()
		wg.Wait()
		want := []string{"1old", "2unfinished", "6" + "4", "7" + "5", "8" + "6", "9end"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("followed (-want +got):\n%s", diff)
		}
		for line := range r.Follow(t.Context()) {
			if line.Seq == 9 {
				return
			}
		}
		t.Error("a closed ring does not yield its lines")
	})
}

func TestRingFollowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRing(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.Write([]byte("a\n"))
		n := 0
		for range r.Follow(ctx) {
			n++
		}
		if n != 1 || ctx.Err() == nil {
			t.Errorf("%d lines, context %v", n, ctx.Err())
		}
		r.Write([]byte("b\n"))
		for range r.Follow(t.Context()) {
			break
		}
	})
}

// Many writers and readers at once; the race detector watches.
func TestRingConcurrently(t *testing.T) {
	r := NewRing(4 << 10)
	var wg sync.WaitGroup
	var followers sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for i := range 500 {
				fmt.Fprintf(r, "line %d\n", i)
				r.Lines()
				r.Dropped()
			}
		})
		followers.Go(func() {
			var last uint64
			for line := range r.Follow(t.Context()) {
				if line.Seq <= last {
					t.Errorf("line %d after %d", line.Seq, last)
				}
				last = line.Seq
			}
			if last != 1500 {
				t.Errorf("last line is %d", last)
			}
		})
	}
	wg.Wait()
	r.Close()
	followers.Wait()
}

// Whatever is written in whatever pieces: the bound holds, and with a bound that is
// large enough the text comes back.
func FuzzRing(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nunfinished"), 3, 100)
	f.Add([]byte("\xff\x00\n\r\r\n"), 1, 1)
	f.Add([]byte("longer than the limit\nand more\n"), 7, lineCost+9)
	f.Fuzz(func(t *testing.T, data []byte, chunk, limit int) {
		limit = limit & (1<<16 - 1)
		chunk = max(1, chunk&0xffff)
		small, large := NewRing(max(limit, 1)), NewRing(1<<30)
		for rest := data; len(rest) > 0; {
			n := min(chunk, len(rest))
			small.Write(rest[:n])
			large.Write(rest[:n])
			rest = rest[n:]
		}
		if lines := small.Lines(); len(lines) > 2 && small.size > small.limit {
			t.Errorf("%d lines hold %d of %d bytes", len(lines), small.size, small.limit)
		}
		large.Flush()
		small.Flush()
		var back strings.Builder
		for _, l := range large.Lines() {
			back.WriteString(l.Text)
			if !l.Partial {
				back.WriteByte('\n')
			}
		}
		want := strings.ReplaceAll(string(data), "\r\n", "\n")
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		// A carriage return at the very end of a cut piece stays; do not compare those.
		if !strings.Contains(string(data), "\r") && back.String() != want {
			t.Errorf("wrote %q, read %q", want, back.String())
		}
		if large.Dropped() != 0 {
			t.Errorf("dropped %d bytes for nothing", large.Dropped())
		}
	})
}
