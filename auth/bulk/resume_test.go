package bulk

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/event"
)

// A process dies after half of the consents: what was finished stays finished, the
// rest is taken up by the next one under the same address.
func TestResumeAfterHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored := map[string]bool{}
		scripts := map[string]script{}
		names := []string{"a", "b", "c", "d"}
		for _, n := range names {
			scripts[n] = script{standing: func(context.Context) (Standing, error) {
				return Standing{Stored: stored[n], Usable: stored[n]}, nil
			}}
		}
		e := newScripted(scripts)
		before := New(e, nil)
		first := before.Prepare(t.Context(), targetsOf(names...), ModeMissing, Redirect{}, nil)
		for _, i := range []int{0, 2} {
			if _, err := before.Complete(t.Context(), first[i].Login.State, code("c"), ""); err != nil {
				t.Fatal(err)
			}
			stored[names[i]] = true
		}
		_ = before.Close()

		d := newDriver(t, e, nil)
		waiting, err := d.Resume(t.Context())
		if err != nil || len(waiting) != 2 || d.Pending() != 2 {
			t.Fatalf("Resume: %d, %v; %d pending", len(waiting), err, d.Pending())
		}
		second := d.Prepare(t.Context(), targetsOf(names...), ModeMissing, Redirect{}, nil)
		if diff := cmp.Diff([]string{"skipped a already connected", "pending b", "skipped c already connected", "pending d"}, says(second)); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		for _, i := range []int{1, 3} {
			if !second[i].Joined || second[i].Login.State != first[i].Login.State {
				t.Errorf("%s was begun anew", names[i])
			}
			if _, err := d.Complete(t.Context(), second[i].Login.State, code("c"), ""); err != nil {
				t.Error(err)
			}
		}
		if err := d.Wait(t.Context()); err != nil || len(e.begun) != 4 {
			t.Errorf("Wait %v, begun %v", err, e.begun)
		}
	})
}

// Without Resume, an answer to a login of an earlier process still counts.
func TestAnswerOfAnEarlierProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(nil)
		before := New(e, nil)
		state := begin(t, before, "a")[0]
		_ = before.Close()
		d := newDriver(t, e, nil)
		if _, err := d.Complete(t.Context(), state, code("c"), ""); err != nil {
			t.Fatal(err)
		}
		if row := one(t, d); row.Phase != PhaseConnected || row.Server != "a" {
			t.Errorf("row %+v", row)
		}
	})
}

// A login that cannot be joined is started again, and the old page still counts: the
// account is connected by whichever comes first, and the other is given up.
func TestEitherLoginConnects(t *testing.T) {
	for _, which := range []string{"old", "new"} {
		t.Run(which, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newScripted(nil)
				before := New(e, nil)
				old := begin(t, before, "a")[0]
				_ = before.Close()
				time.Sleep(time.Second)
				e.joinable = false
				d := newDriver(t, e, nil)
				sub := d.Subscribe()
				states := map[string]string{"old": old, "new": begin(t, d, "a")[0]}
				if states["new"] == old || d.Pending() != 1 {
					t.Fatalf("states %v, %d pending", states, d.Pending())
				}
				if _, err := d.Complete(t.Context(), states[which], code("c"), ""); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				delete(states, which)
				for _, other := range states {
					if diff := cmp.Diff([]string{other}, e.cancelled()); diff != "" {
						t.Errorf("given up (-want +got):\n%s", diff)
					}
				}
				if diff := cmp.Diff([]string{"discovering", "awaiting_consent", "exchanging", "connected"}, phases(t, sub)["a"]); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestFreshGivesTheOldOneUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(nil)
		d := newDriver(t, e, nil)
		sub := d.Subscribe()
		old := begin(t, d, "a")[0]
		time.Sleep(time.Second)
		again := d.Prepare(t.Context(), targetsOf("a"), ModeAll, Redirect{}, nil)[0]
		if again.Login.State != old || !again.Joined {
			t.Errorf("asked twice: %q joined=%v, want the same login", again.Login.State, again.Joined)
		}
		fresh := d.Prepare(t.Context(), targetsOf("a"), ModeAll, Redirect{Fresh: true}, nil)[0]
		synctest.Wait()
		if fresh.Login.State == old || d.Pending() != 1 {
			t.Errorf("fresh is %q, %d pending", fresh.Login.State, d.Pending())
		}
		if diff := cmp.Diff([]string{old}, e.cancelled()); diff != "" {
			t.Errorf("given up (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"discovering", "awaiting_consent", "awaiting_consent"}, phases(t, sub)["a"]); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// Two drivers on one store, as two processes are: the second joins, and both see the
// end.
func TestTwoDriversShareTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(nil)
		one, two := newDriver(t, e, nil), newDriver(t, e, nil)
		a, b := begin(t, one, "x", "y"), begin(t, two, "x", "y")
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("the second began its own (-first +second):\n%s", diff)
		}
		for _, s := range a {
			if _, err := two.Complete(t.Context(), s, code("c"), ""); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range []*Driver{one, two} {
			if err := d.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, r := range d.Rows() {
				if r.Phase != PhaseConnected {
					t.Errorf("%s is %s", r.Server, r.Phase)
				}
			}
		}
	})
}

// A store that cannot list costs joining, nothing else.
func TestWithoutAList(t *testing.T) {
	e := newScripted(nil)
	e.noList = errStore
	d := newDriver(t, e, nil)
	begin(t, d, "a")
	if _, err := d.Resume(t.Context()); !errors.Is(err, errStore) {
		t.Errorf("Resume: %v", err)
	}
}

// stubborn breaks Wait a few times.
type stubborn struct {
	*scripted
	fail chan error
}

func (s *stubborn) Wait(ctx context.Context, p auth.Pending) (*auth.Login, error) {
	select {
	case err := <-s.fail:
		if err == nil {
			panic("wait")
		}
		return nil, err
	default:
		return s.scripted.Wait(ctx, p)
	}
}

// A store that is out of reach for a while does not end the watch.
func TestWatchGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &stubborn{newScripted(nil), make(chan error, 2)}
		e.fail <- errStore
		e.fail <- nil
		d := newDriver(t, e, nil)
		state := begin(t, d, "a")[0]
		time.Sleep(5 * time.Second)
		if _, err := e.Complete(t.Context(), auth.Callback{State: state, Code: code("c")}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if row := one(t, d); row.Phase != PhaseConnected {
			t.Errorf("row %+v", row)
		}
	})
}

// A subscriber that does not read costs the driver nothing and is told what it lost;
// Rows has the truth.
func TestLossySubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(nil)
		d := newDriver(t, e, nil)
		stalled := d.Subscribe()
		var targets []Target
		for i := range 100 {
			targets = append(targets, target("s"+string(rune('a'+i/10))+string(rune('0'+i%10))))
		}
		start := time.Now()
		for _, o := range d.Prepare(t.Context(), targets, ModeAll, Redirect{}, nil) {
			if _, err := d.Complete(t.Context(), o.Login.State, code("c"), ""); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(start) != 0 {
			t.Errorf("the driver waited %v", time.Since(start))
		}
		_, lost, err := stalled.Next(t.Context())
		if err != nil || lost != 400-event.DefaultBacklog {
			t.Errorf("first read: lost %d, %v; want %d lost of 400", lost, err, 400-event.DefaultBacklog)
		}
		for _, r := range d.Rows() {
			if r.Phase != PhaseConnected {
				t.Fatalf("%s is %s", r.Server, r.Phase)
			}
		}
		stalled.Close()
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(nil)
		d := New(e, nil)
		sub := d.Subscribe()
		begin(t, d, "a")
		_ = d.Close()
		_ = d.Close()
		if err := d.Wait(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Wait: %v", err)
		}
		if got := d.Prepare(t.Context(), targetsOf("b"), ModeAll, Redirect{}, nil)[0]; !errors.Is(got.Err, ErrClosed) {
			t.Errorf("Prepare: %q", say(got))
		}
		if diff := cmp.Diff([]string{"discovering", "awaiting_consent"}, phases(t, sub)["a"]); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if len(e.waiting) != 1 || len(e.cancelled()) != 0 {
			t.Errorf("closing gave up logins: %d wait, %v cancelled", len(e.waiting), e.cancelled())
		}
	})
}

// Close does not wait forever for an engine that ignores its context.
func TestCloseLeavesTheDeafBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		e := newScripted(map[string]script{"a": {begin: func(context.Context, func()) error { <-stuck; return errStore }}})
		d := New(e, nil)
		_ = d.Prepare(t.Context(), targetsOf("a"), ModeAll, Redirect{}, nil)
		start := time.Now()
		_ = d.Close()
		if took := time.Since(start); took != goodbye {
			t.Errorf("Close took %v, want %v", took, goodbye)
		}
		close(stuck)
	})
}
