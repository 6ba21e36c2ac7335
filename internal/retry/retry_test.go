package retry

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBackoff(t *testing.T) {
	b := Backoff{First: time.Second, Limit: 5 * time.Second}
	for range 2 {
		for _, most := range []time.Duration{1, 2, 4, 5, 5} {
			most *= time.Second
			if got := b.Next(); got < most/2 || got > most {
				t.Errorf("waits %v, want between %v and %v", got, most/2, most)
			}
		}
		b.Reset()
	}
}

func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		for v, want := range map[string]time.Duration{
			"": 0, "0": 0, "7": 7 * time.Second, "-7": 0, "7.5": 0, "soon": 0, "99999999999999999999": 0,
			date(time.Minute): time.Minute, date(-time.Minute): 0,
		} {
			if got := After(v); got != want {
				t.Errorf("%q: %v, want %v", v, got, want)
			}
		}
	})
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Sleep(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, d := range []time.Duration{-1, 0, time.Hour} {
			if err := Sleep(ctx, d); !errors.Is(err, context.Canceled) {
				t.Errorf("%v: %v", d, err)
			}
		}
	})
}
