package upstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// endless is a sender as fast as one can read.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// readAll reads size bytes in messages of the given length and returns how long
// that took.
func readAll(ctx context.Context, pace *Pace, size, message int) time.Duration {
	began := time.Now()
	in := &pacedReader{ctx: ctx, r: endless{}, pace: pace}
	part := make([]byte, 32<<10)
	for range size / message {
		for left := message; left > 0; left -= len(part) {
			_, _ = in.Read(part) // it never ends
		}
		in.next()
	}
	return time.Since(began)
}

func TestPaceOfLargeMessages(t *testing.T) {
	tests := []struct {
		name          string
		size, message int
		atLeast       time.Duration
		atMost        time.Duration
	}{
		{"ordinary answers are never held up", 1 << 30, 64 << 10, 0, 0},
		{"one of a few megabytes passes", 5 << 20, 5 << 20, 0, 0},
		{"the largest allowed takes a moment", 16 << 20, 16 << 20, 200 * time.Millisecond, 400 * time.Millisecond},
		{"many of them take their time", 20 * 16 << 20, 16 << 20, 8 * time.Second, 10 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := readAll(t.Context(), NewPace(), tt.size, tt.message)
				if got < tt.atLeast || got > tt.atMost {
					t.Errorf("took %v, want %v to %v", got, tt.atLeast, tt.atMost)
				}
			})
		})
	}
}

// The pace is that of a server: connections that come and go, or stand beside each
// other, share it.
func TestPaceIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := NewPace()
		first := readAll(t.Context(), pace, 5<<20, 5<<20)
		second := readAll(t.Context(), pace, 5<<20, 5<<20)
		if first != 0 || second == 0 {
			t.Errorf("the first took %v, the second %v; want only the second to wait", first, second)
		}
		time.Sleep(time.Second) // bubble time: what was used is forgotten
		if third := readAll(t.Context(), pace, 5<<20, 5<<20); third != 0 {
			t.Errorf("after a rest it took %v", third)
		}
	})
}

func TestPaceOfChatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, stop := context.WithCancel(t.Context())
		c := &Conn{opt: Options{Pace: NewPace()}, life: life}
		began := time.Now()
		for range chatterBurst {
			c.stray()
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the first %d messages took %v, want no delay", chatterBurst, took)
		}
		for range 10 * chatterRate {
			c.stray()
		}
		if took := time.Since(began); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("ten seconds' worth of messages took %v", took)
		}
		stop()
		began = time.Now()
		for range 10 * chatterRate {
			c.stray()
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("after the end of the connection it still waited for %v", took)
		}
	})
}
