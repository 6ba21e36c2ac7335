// Package retry is how long to wait before something is tried again: [Backoff] for what
// fails repeatedly, [After] for what a server asks for, [Sleep] to wait.
package retry

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Backoff doubles from First to Limit, with jitter on the upper half. It must not be
// used concurrently.
type Backoff struct {
	First, Limit time.Duration
	now          time.Duration
}

// Next returns how long to wait this time.
func (b *Backoff) Next() time.Duration {
	b.now = min(max(b.First, b.now*2), b.Limit)
	return b.now/2 + rand.N(b.now/2+1)
}

// Reset begins with First again.
func (b *Backoff) Reset() { b.now = 0 }

// After reads the value of a Retry-After header: seconds or a date. It is 0 for nonsense
// and for the past.
func After(v string) time.Duration {
	if s, err := strconv.ParseInt(v, 10, 32); err == nil {
		return max(0, time.Duration(s)*time.Second)
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(t))
	}
	return 0
}

// Sleep waits for d; the error is that of ctx when it ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
