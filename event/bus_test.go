package event

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type got struct{ V, Lost int }

func drain(t *testing.T, s *Subscription[int]) []got {
	t.Helper()
	s.Close()
	var all []got
	for {
		v, lost, err := s.Next(t.Context())
		if errors.Is(err, ErrClosed) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got{v, lost})
	}
}

func TestBacklog(t *testing.T) {
	tests := []struct {
		name             string
		backlog, publish int
		want             []got
	}{
		{"nothing", 3, 0, nil},
		{"fits", 3, 3, []got{{0, 0}, {1, 0}, {2, 0}}},
		{"one over", 3, 4, []got{{1, 1}, {2, 0}, {3, 0}}},
		{"twice round", 3, 9, []got{{6, 6}, {7, 0}, {8, 0}}},
		{"backlog of one", 1, 5, []got{{4, 4}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b Bus[int]
			s := b.Subscribe(tt.backlog)
			for i := range tt.publish {
				b.Publish(i)
			}
			if diff := cmp.Diff(tt.want, drain(t, s)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultBacklog(t *testing.T) {
	var b Bus[int]
	s := b.Subscribe(0)
	for i := range DefaultBacklog + 10 {
		b.Publish(i)
	}
	all := drain(t, s)
	if len(all) != DefaultBacklog || all[0] != (got{10, 10}) {
		t.Errorf("kept %d, first %+v; want %d and the first to report 10 lost", len(all), all[0], DefaultBacklog)
	}
}

// A subscriber that never reads must cost the publisher and the others nothing.
func TestStalledReaderBlocksNobody(t *testing.T) {
	var b Bus[int]
	stalled := b.Subscribe(2)
	defer stalled.Close()
	quick := b.Subscribe(1000)
	for i := range 1000 {
		b.Publish(i)
	}
	all := drain(t, quick)
	if len(all) != 1000 {
		t.Errorf("the quick reader got %d of 1000", len(all))
	}
}

func TestNextWaitsAndObeysContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Bus[int]
		s := b.Subscribe(4)
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Next with nothing to read: %v, want the deadline", err)
		}
		go func() { time.Sleep(time.Minute); b.Publish(7) }()
		start := time.Now()
		if v, _, err := s.Next(t.Context()); v != 7 || err != nil || time.Since(start) != time.Minute {
			t.Fatalf("Next = %d, %v after %v", v, err, time.Since(start))
		}
	})
}

func TestCloseWakesReader(t *testing.T) {
	closers := map[string]func(*Bus[int], *Subscription[int]){
		"bus":          func(b *Bus[int], _ *Subscription[int]) { b.Close(); b.Close() },
		"subscription": func(_ *Bus[int], s *Subscription[int]) { s.Close(); s.Close() },
	}
	for name, closeIt := range closers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b Bus[int]
				s := b.Subscribe(1)
				go func() { time.Sleep(time.Second); closeIt(&b, s) }()
				for range s.All(t.Context()) {
					t.Error("an event nobody published")
				}
				if n := b.Subscribers(); n != 0 {
					t.Errorf("%d subscribers left", n)
				}
				b.Publish(1) // must not panic
			})
		})
	}
}

func TestSubscribeAfterClose(t *testing.T) {
	var b Bus[int]
	b.Close()
	if _, _, err := b.Subscribe(1).Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Next = %v, want ErrClosed", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	var b Bus[int]
	var wg sync.WaitGroup
	const writers, each = 4, 500
	for range 3 {
		s := b.Subscribe(16)
		wg.Go(func() {
			seen := 0
			for _, lost := range s.All(t.Context()) {
				seen += 1 + lost
				if seen == writers*each {
					s.Close()
				}
			}
			if seen != writers*each {
				t.Errorf("read and lost %d, published %d", seen, writers*each)
			}
		})
	}
	for range writers {
		wg.Go(func() {
			for i := range each {
				b.Publish(i)
			}
		})
	}
	wg.Wait()
}

// Whatever the order of publishing and reading, read plus lost is published,
// in order, and never more than the backlog waits.
func TestBusModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		var b Bus[int]
		s := b.Subscribe(limit)
		defer s.Close()
		var model []int
		next, lost := 0, 0
		for _, publish := range rapid.SliceOfN(rapid.Bool(), 0, 60).Draw(t, "publish") {
			if publish {
				b.Publish(next)
				model = append(model, next)
				next++
				if len(model) > limit {
					model = model[1:]
					lost++
				}
				continue
			}
			if len(model) == 0 {
				continue
			}
			v, l, err := s.Next(context.Background())
			if err != nil || v != model[0] || l != lost {
				t.Fatalf("Next = %d, %d, %v; want %d, %d", v, l, err, model[0], lost)
			}
			model, lost = model[1:], 0
		}
	})
}

func TestEventsAsJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := Header{At: at, Server: "linear", Account: "work"}
	tests := []struct {
		e    Event
		kind Kind
		want string
	}{
		{
			ServerChanged{Header: h, From: "connecting", To: "ready"},
			KindServer,
			`{"at":"2026-01-02T03:04:05Z","server":"linear","account":"work","from":"connecting","to":"ready"}`,
		},
		{
			GrantChanged{Header: h, Change: GrantRefreshed},
			KindGrant,
			`{"at":"2026-01-02T03:04:05Z","server":"linear","account":"work","change":"refreshed"}`,
		},
		{
			ToolsChanged{Header: h, List: "tools", Count: 3},
			KindTools,
			`{"at":"2026-01-02T03:04:05Z","server":"linear","account":"work","list":"tools","count":3}`,
		},
		{
			CallFinished{Header: h, Method: "tools/call", Tool: "x", Took: 5, Outcome: "ok"},
			KindCall,
			`{"at":"2026-01-02T03:04:05Z","server":"linear","account":"work","method":"tools/call","tool":"x","took_ns":5,"outcome":"ok"}`,
		},
		{
			LogLine{Header: h, Text: "hi"},
			KindLog,
			`{"at":"2026-01-02T03:04:05Z","server":"linear","account":"work","text":"hi"}`,
		},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			raw, err := json.Marshal(tt.e)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(raw)); diff != "" || tt.e.Kind() != tt.kind {
				t.Errorf("kind %q, JSON (-want +got):\n%s", tt.e.Kind(), diff)
			}
		})
	}
}

func BenchmarkPublish(b *testing.B) {
	var bus Bus[int]
	for range 4 {
		defer bus.Subscribe(0).Close()
	}
	for b.Loop() {
		bus.Publish(1)
	}
}
