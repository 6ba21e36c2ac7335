package surface

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// TestListsDoNotWaitForLateServers: once half of the servers have answered, the
// others get as long again, at least the quiet time; nobody waits for them twice.
func TestListsDoNotWaitForLateServers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []time.Duration // 0: never
		known   int
		want    time.Duration
	}{
		{"all at once", []time.Duration{time.Millisecond, time.Millisecond}, 0, time.Millisecond},
		{"one is hung", []time.Duration{time.Millisecond, 2 * time.Millisecond, 0}, 0, 2*time.Millisecond + DefaultQuiet},
		{"all are slow, one is hung", []time.Duration{time.Second, time.Second, 0}, 0, 2 * time.Second},
		{"the only one is slow", []time.Duration{3 * time.Second}, 0, 3 * time.Second},
		{"the only one is hung", []time.Duration{0}, 0, maxWait},
		{"most are known, the other hangs", []time.Duration{0}, 2, fewUnknown},
		{"most are known, the other is quick", []time.Duration{time.Millisecond}, 2, time.Millisecond},
		{"half are known", []time.Duration{time.Millisecond, 0}, 2, time.Millisecond + DefaultQuiet},
		{"late, but in time", []time.Duration{time.Second, 1900 * time.Millisecond}, 0, 1900 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(policy.NewGate(nil, nil, nil), nil)
				defer s.Close()
				var open []*reading
				for _, d := range tt.answers {
					r := &reading{done: make(chan struct{})}
					if d > 0 {
						time.AfterFunc(d, func() {
							s.readings.mu.Lock()
							r.ended = time.Now()
							s.readings.mu.Unlock()
							close(r.done)
						})
					}
					open = append(open, r)
				}
				began := time.Now()
				s.await(t.Context(), open, tt.known)
				if got := time.Since(began); got != tt.want {
					t.Errorf("waited %v, want %v", got, tt.want)
				}
				for i, r := range open {
					if late := tt.answers[i] == 0; s.readings.isAbandoned(r) != late {
						t.Errorf("server %d: abandoned is %v", i, !late)
					}
				}
			})
		})
	}
}

// TestListeningBacksOff: a server that refuses is not asked more than once a minute.
func TestListeningBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listened []time.Time
		hosted := host.New(nil)
		defer hosted.Close()
		if err := hosted.Spawn(t.Context(), config.Server{Name: "s", Transport: config.TransportHTTP, URL: "http://127.0.0.1:1"}, &host.SpawnOptions{Lazy: true}); err != nil {
			t.Fatal(err)
		}
		deny := &config.Config{Usher: config.Settings{Policy: config.Policy{Deny: []config.Rule{{Pattern: "s"}}}}}
		gate := policy.NewGate(hosted, nil, &policy.Options{Config: deny, OnCall: func(policy.Finished) { listened = append(listened, time.Now()) }})
		defer gate.Close(t.Context())
		s := New(gate, nil)
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		s.keepListening(ctx, (&endpoint{s: s}).agent(Agent{}), policy.Key{Server: "s"}, Subscription{}, nil)
		if time.Since(began) != time.Hour || len(listened) < 60 || len(listened) > 70 {
			t.Errorf("asked %d times in %v", len(listened), time.Since(began))
		}
		if first := listened[1].Sub(listened[0]); first != time.Second {
			t.Errorf("the second try comes after %v", first)
		}
	})
}

// TestBurstsAreToldOnce: changes are gathered, and what ends as it was is not told.
func TestBurstsAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(policy.NewGate(nil, nil, nil), nil)
		defer s.Close()
		var version atomic.Int32
		var heard []string
		l := &listener{
			ready: func() {},
			want:  Subscription{Tools: true, Prompts: true}, on: func(m mcp.Message) { heard = append(heard, m.Method) },
			sums: func(context.Context) lists3 {
				sum := [32]byte{byte(version.Load())}
				return lists3{sum, {}, sum}
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.run(ctx, l) }()
		synctest.Wait()
		for range 10 {
			version.Add(1)
			s.wake()
			time.Sleep(gatherFor / 20)
		}
		time.Sleep(2 * gatherFor)
		s.wake() // nothing has changed since
		time.Sleep(2 * gatherFor)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{mcp.MethodNotifyTools}, heard); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// TestRemainingTime: a list says how much longer it may be kept, and in the end that
// it may not.
func TestRemainingTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := source{known: true, listing: policy.Listing{Catalog: policy.Catalog{At: time.Now(), TTL: time.Minute, Public: true}}}
		f := freshness{public: true}
		f.add(&src)
		l := newList("tools", nil, nil, f)
		for _, want := range []string{"60000", "40000", "20000", "0", "0"} {
			if got, _ := jsonx.Get(l.forAgent(mcp.V20260728), "ttlMs"); string(got) != want {
				t.Errorf("ttlMs %s, want %s", got, want)
			}
			time.Sleep(20 * time.Second)
		}
		if got := string(l.forAgent(mcp.V20251125)); strings.Contains(got, "ttlMs") {
			t.Errorf("an older agent gets %s", got)
		}
	})
}
