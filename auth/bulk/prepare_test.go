package bulk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
)

var errStore = errors.New("the store is on fire")

// say is an outcome in one line.
func say(o Outcome) string {
	return strings.TrimRight(fmt.Sprintf("%s %s %s%s", o.Status, o.Server, o.Reason, o.Problem()), " ")
}

func says(all []Outcome) []string {
	var out []string
	for _, o := range all {
		out = append(out, say(o))
	}
	return out
}

func TestModes(t *testing.T) {
	is := func(s Standing, err error) script {
		return script{standing: func(context.Context) (Standing, error) { return s, err }}
	}
	scripts := map[string]script{
		"new": is(Standing{}, nil), "good": is(Standing{Stored: true, Usable: true}, nil),
		"dead": is(Standing{Stored: true}, nil), "unknown": is(Standing{}, errStore),
		"lost": {
			standing: func(context.Context) (Standing, error) { return Standing{Stored: true}, nil },
			begin:    func(context.Context, func()) error { return errors.New("no metadata") },
		},
		"open": {begin: func(context.Context, func()) error { return fmt.Errorf("look: %w", ErrNotNeeded) }},
	}
	names := []string{"new", "good", "dead", "unknown", "lost", "open"}
	for mode, want := range map[Mode][]string{
		ModeMissing: {
			"pending new", "skipped good already connected", "pending dead", "failed unknown the store is on fire",
			"failed lost no metadata", "skipped open look: the server asks for no login",
		},
		ModeExpired: {
			"skipped new no stored token", "skipped good token still valid", "pending dead", "failed unknown the store is on fire",
			"failed lost no metadata", "skipped open no stored token",
		},
		ModeAll: {
			"pending new", "pending good", "pending dead", "pending unknown",
			"failed lost no metadata", "skipped open look: the server asks for no login",
		},
		"some": {
			`failed new unknown mode "some"; known are missing, expired and all`, `failed good unknown mode "some"; known are missing, expired and all`,
			`failed dead unknown mode "some"; known are missing, expired and all`, `failed unknown unknown mode "some"; known are missing, expired and all`,
			`failed lost unknown mode "some"; known are missing, expired and all`, `failed open unknown mode "some"; known are missing, expired and all`,
		},
	} {
		t.Run(string(mode), func(t *testing.T) {
			d := newDriver(t, newScripted(scripts), nil)
			got := says(d.Prepare(t.Context(), targetsOf(names...), mode, Redirect{}, nil))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNobodyIsAskedWhereNoPersonIsNeeded(t *testing.T) {
	with := func(name string, change func(*config.Server)) Target {
		out := target(name)
		change(&out.Server)
		return out
	}
	targets := []Target{
		with("program", func(s *config.Server) { s.Transport, s.URL = config.TransportStdio, "" }),
		with("header", func(s *config.Server) { s.Headers = map[string]string{"authorization": "Bearer x"} }),
		with("machine", func(s *config.Server) { s.OAuth = &config.OAuth{Grant: config.GrantClientCredentials} }),
		with("broken", func(s *config.Server) { s.Problem = errors.New("line 7: no url") }),
		with("person", func(s *config.Server) { s.OAuth = &config.OAuth{Grant: config.GrantAuthorizationCode} }),
		target("person"),
	}
	e := newScripted(nil)
	d := newDriver(t, e, nil)
	got := says(d.Prepare(t.Context(), targets, ModeAll, Redirect{}, nil))
	want := []string{
		"skipped program a local program, takes its credentials from env", "skipped header has a configured Authorization header",
		"skipped machine logs in without a person (client_credentials)", "failed broken line 7: no url", "pending person", "skipped person named twice",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"person"}, e.begun); diff != "" {
		t.Errorf("begun (-want +got):\n%s", diff)
	}
}

// Outcomes are handed over as they come and returned as asked, never more than the
// bound at work, and a slow listener holds up nobody.
func TestOutcomesComeEarlyAndReturnInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(map[string]script{
			"a": {begin: after(3 * time.Second)}, "b": {begin: after(time.Second)}, "c": {begin: after(2 * time.Second)}, "d": {begin: after(time.Second)},
		})
		d := newDriver(t, e, &Options{Bulk: config.Bulk{Concurrency: 2}})
		var early []string
		start := time.Now()
		got := d.Prepare(t.Context(), targetsOf("a", "b", "c", "d"), ModeAll, Redirect{}, func(o Outcome) {
			early = append(early, o.Server)
			time.Sleep(10 * time.Second) // a slow listener
		})
		if took := time.Since(start); took != 41*time.Second {
			t.Errorf("it took %v: the first after 1 s, then four times the listener's 10 s", took)
		}
		if diff := cmp.Diff([]string{"pending a", "pending b", "pending c", "pending d"}, says(got)); diff != "" {
			t.Errorf("returned (-want +got):\n%s", diff)
		}
		// b after 1 s, a and c after 3 s, d after 4 s
		if early[0] != "b" || early[3] != "d" {
			t.Errorf("handed over in the order %v", early)
		}
		if e.top != 2 {
			t.Errorf("%d at once, want 2", e.top)
		}
		if n := d.Pending(); n != 4 {
			t.Errorf("%d pending, want 4", n)
		}
	})
}

func TestTimeoutsSayWhere(t *testing.T) {
	for name, tt := range map[string]struct {
		s    script
		took time.Duration
		want string
	}{
		"resolving": {script{begin: hang}, 30 * time.Second, "timed out resolving authorization server"},
		"minting": {script{begin: func(ctx context.Context, resolved func()) error {
			resolved()
			return hang(ctx, nil)
		}}, 30 * time.Second, "timed out minting authorization URL"},
		"stored": {
			script{standing: func(ctx context.Context) (Standing, error) { return Standing{}, hang(ctx, nil) }},
			30 * time.Second, "timed out looking at the stored login",
		},
		"one deadline for all steps": {script{standing: func(ctx context.Context) (Standing, error) {
			return Standing{}, after(20*time.Second)(ctx, func() {})
		}, begin: hang}, 30 * time.Second, "timed out resolving authorization server"},
		"deaf": {script{}, 31 * time.Second, "timed out resolving authorization server"},
		"its own bound": {script{begin: func(ctx context.Context, _ func()) error {
			_ = after(10*time.Second)(ctx, func() {})
			return fmt.Errorf("fetch metadata: %w", context.DeadlineExceeded)
		}}, 10 * time.Second, "timed out resolving authorization server: fetch metadata: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck := make(chan struct{})
				if name == "deaf" {
					tt.s.begin = func(context.Context, func()) error { <-stuck; return errors.New("too late") }
				}
				d := New(newScripted(map[string]script{"s": tt.s}), nil)
				start := time.Now()
				got := d.Prepare(t.Context(), targetsOf("s"), ModeMissing, Redirect{}, nil)[0]
				if took := time.Since(start); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				if got.Status != StatusFailed || got.Problem() != tt.want || !errors.Is(got.Err, context.DeadlineExceeded) {
					t.Errorf("outcome %q (%v), want %q", say(got), got.Err, tt.want)
				}
				if row := one(t, d); row.Phase != PhaseFailed || row.Detail != tt.want {
					t.Errorf("row %+v", row.Event)
				}
				close(stuck)
				_ = d.Close()
			})
		})
	}
}

// A login that is minted after its account was reported as failed must not be left
// to wait for somebody who will never come.
func TestLateLoginIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(map[string]script{"s": {begin: func(context.Context, func()) error {
			time.Sleep(time.Minute) // deaf to its context
			return nil
		}}})
		d := newDriver(t, e, nil)
		if got := d.Prepare(t.Context(), targetsOf("s"), ModeAll, Redirect{}, nil)[0]; got.Status != StatusFailed {
			t.Fatalf("outcome %q", say(got))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"state-s-1"}, e.cancelled()); diff != "" {
			t.Errorf("given up (-want +got):\n%s", diff)
		}
		if n := d.Pending(); n != 0 {
			t.Errorf("%d pending", n)
		}
	})
}

func TestOneFaultTouchesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(map[string]script{
			"panics": {begin: func(context.Context, func()) error { panic("token=abcdefgh") }},
			"hangs":  {begin: hang},
			"fails":  {begin: func(context.Context, func()) error { return auth.ErrNoClient }},
		})
		d := newDriver(t, e, &Options{Bulk: config.Bulk{Concurrency: 2}})
		sub := d.Subscribe()
		start := time.Now()
		at := map[string]time.Duration{}
		got := d.Prepare(t.Context(), targetsOf("panics", "hangs", "fails", "x", "y", "z"), ModeAll, Redirect{}, func(o Outcome) {
			at[o.Server] = time.Since(start)
		})
		want := []string{
			"failed panics a fault in usher: token=…; please report it", "failed hangs timed out resolving authorization server",
			"failed fails no client id", "pending x", "pending y", "pending z",
		}
		if diff := cmp.Diff(want, says(got)); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]time.Duration{"panics": 0, "hangs": 30 * time.Second, "fails": 0, "x": 0, "y": 0, "z": 0}, at); diff != "" {
			t.Errorf("ready after (-want +got):\n%s", diff)
		}
		heard := phases(t, sub)
		if diff := cmp.Diff([]string{"discovering", "awaiting_consent"}, heard["x"]); diff != "" {
			t.Errorf("events of x (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"discovering", "failed: timed out resolving authorization server"}, heard["hangs"]); diff != "" {
			t.Errorf("events of hangs (-want +got):\n%s", diff)
		}
	})
}

func TestInterruptedPreparation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(map[string]script{"slow": {begin: hang}})
		d := newDriver(t, e, &Options{Bulk: config.Bulk{Concurrency: 1}})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		got := d.Prepare(ctx, targetsOf("first", "slow", "last"), ModeAll, Redirect{}, nil)
		want := []string{
			"pending first", "failed slow interrupted while resolving authorization server: context canceled",
			"failed last interrupted before its turn came: context canceled",
		}
		if diff := cmp.Diff(want, says(got)); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if n := d.Pending(); n != 1 {
			t.Errorf("%d pending: what was begun stays", n)
		}
	})
}
