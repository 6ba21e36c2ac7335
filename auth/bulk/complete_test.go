package bulk

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/vault"
)

// begin prepares servers and returns the states of their logins.
func begin(t *testing.T, d *Driver, names ...string) []string {
	t.Helper()
	var states []string
	for _, o := range d.Prepare(t.Context(), targetsOf(names...), ModeAll, Redirect{}, nil) {
		if o.Status != StatusPending {
			t.Fatalf("outcome %q", say(o))
		}
		states = append(states, o.Login.State)
	}
	return states
}

func code(text string) vault.Secret { return vault.NewSecret(text) }

func TestCompleteOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(map[string]script{"a": {issuer: "https://as.example"}})
		d := newDriver(t, e, nil)
		sub := d.Subscribe()
		state := begin(t, d, "a")[0]
		if _, err := d.Complete(t.Context(), state, code("c1"), "https://as.example"); err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{state, "nobody's", ""} {
			if _, err := d.Complete(t.Context(), s, code("c2"), ""); !errors.Is(err, auth.ErrUnknownState) {
				t.Errorf("state %q: %v, want unknown", s, err)
			}
		}
		synctest.Wait()
		if diff := cmp.Diff(map[string][]string{"a": {"discovering", "awaiting_consent", "exchanging", "connected"}}, phases(t, sub)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a c1"}, e.trades()); diff != "" {
			t.Errorf("trades (-want +got):\n%s", diff)
		}
		if err := d.Wait(t.Context()); err != nil || d.Pending() != 0 {
			t.Errorf("Wait %v, %d pending", err, d.Pending())
		}
	})
}

// An answer from the browser of somebody else is unknown, and no event.
func TestAnswerOfSomebodyElse(t *testing.T) {
	d := newDriver(t, newScripted(nil), nil)
	sub := d.Subscribe()
	state := begin(t, d, "a")[0]
	if _, err := d.Answer(t.Context(), auth.Callback{State: state, Code: code("c"), Principal: "eve"}); !errors.Is(err, auth.ErrUnknownState) {
		t.Errorf("eve's: %v", err)
	}
	if _, err := d.Answer(t.Context(), auth.Callback{State: state, Code: code("c"), Principal: vault.Local}); err != nil {
		t.Errorf("her own: %v", err)
	}
	if diff := cmp.Diff([]string{"discovering", "awaiting_consent", "exchanging", "connected"}, phases(t, sub)["a"]); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Twenty requests with the same answer trade one code.
func TestSameAnswerManyTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(map[string]script{"a": {complete: func(context.Context) error { time.Sleep(time.Second); return nil }}})
		d := newDriver(t, e, nil)
		state := begin(t, d, "a")[0]
		errs := make(chan error, 20)
		for range cap(errs) {
			go func() {
				_, err := d.Complete(t.Context(), state, code("c"), "")
				errs <- err
			}()
		}
		good := 0
		for range cap(errs) {
			if err := <-errs; err == nil {
				good++
			} else if !errors.Is(err, auth.ErrUnknownState) {
				t.Errorf("%v, want unknown", err)
			}
		}
		if good != 1 || len(e.trades()) != 1 {
			t.Errorf("%d succeeded, %d trades; want 1", good, len(e.trades()))
		}
	})
}

// An answer that does not help leaves the login as it was, and the right one still
// counts.
func TestAnswersThatLeaveTheLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := fmt.Errorf("trade the code: HTTP 503: code=secret-code: %w", auth.ErrUnavailable)
		e := newScripted(map[string]script{"a": {issuer: "https://as.example", complete: func(context.Context) error {
			err := down
			down = nil
			return err
		}}})
		d := newDriver(t, e, nil)
		sub := d.Subscribe()
		state := begin(t, d, "a")[0]
		if _, err := d.Complete(t.Context(), state, code("c"), "https://evil.example"); !errors.Is(err, auth.ErrIssuer) {
			t.Errorf("wrong issuer: %v", err)
		}
		if _, err := d.Complete(t.Context(), state, code("secret-code"), ""); !errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("token endpoint down: %v", err)
		}
		if row := one(t, d); row.Phase != PhaseAwaiting || row.Login == nil {
			t.Errorf("row %+v", row)
		}
		if _, err := d.Complete(t.Context(), state, code("secret-code"), ""); err != nil {
			t.Errorf("the same again: %v", err)
		}
		want := map[string][]string{"a": {
			"discovering", "awaiting_consent", "exchanging", "awaiting_consent: trade the code: HTTP 503: code=… not possible right now",
			"exchanging", "connected",
		}}
		if diff := cmp.Diff(want, phases(t, sub)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// While a forged answer is dealt with, the real one waits; it is not turned away.
func TestForgedAnswerDoesNotTakeThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		e := newScripted(map[string]script{"a": {complete: func(context.Context) error {
			if first {
				first = false
				time.Sleep(time.Minute)
				return auth.ErrUnavailable
			}
			return nil
		}}})
		d := newDriver(t, e, nil)
		state := begin(t, d, "a")[0]
		forged := make(chan error, 1)
		go func() {
			_, err := d.Complete(t.Context(), state, code("forged"), "")
			forged <- err
		}()
		synctest.Wait()
		if _, err := d.Complete(t.Context(), state, code("real"), ""); err != nil {
			t.Errorf("the real one: %v", err)
		}
		if err := <-forged; !errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("the forged one: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.Complete(ctx, state, code("late"), ""); !errors.Is(err, auth.ErrUnknownState) {
			t.Errorf("late: %v", err)
		}
	})
}

func TestRefusalsEndTheLogin(t *testing.T) {
	for name, tt := range map[string]struct {
		cb   auth.Callback
		err  error
		want string
	}{
		"refused": {
			auth.Callback{Code: code("c-0123456789")},
			fmt.Errorf("%w: invalid_grant c-0123456789", auth.ErrRefused),
			"failed: refused by the authorization server: invalid_grant …",
		},
		"denied":   {auth.Callback{Error: "access_denied"}, nil, "failed: login to a: the authorization server answered access_denied"},
		"panicked": {auth.Callback{Code: code("c")}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newScripted(map[string]script{"a": {complete: func(context.Context) error {
					if name == "panicked" {
						panic("boom")
					}
					return tt.err
				}}})
				d := newDriver(t, e, nil)
				sub := d.Subscribe()
				tt.cb.State = begin(t, d, "a")[0]
				if _, err := d.Answer(t.Context(), tt.cb); err == nil {
					t.Error("no error")
				}
				synctest.Wait()
				got := phases(t, sub)["a"]
				if tt.want == "" {
					if last := got[len(got)-1]; last != "awaiting_consent: a fault in usher: boom; please report it" {
						t.Errorf("last event %q", last)
					}
					return
				}
				if diff := cmp.Diff([]string{"discovering", "awaiting_consent", "exchanging", tt.want}, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Somebody else may finish a login: the listener, or another process.
func TestFinishedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(nil)
		d := newDriver(t, e, nil)
		sub := d.Subscribe()
		states := begin(t, d, "a", "b", "c")
		if _, err := e.Complete(t.Context(), auth.Callback{State: states[0], Code: code("c")}); err != nil {
			t.Fatal(err)
		}
		if err := e.Cancel(t.Context(), states[1]); err != nil {
			t.Fatal(err)
		}
		if err := d.Wait(t.Context()); err != nil { // c runs out
			t.Fatal(err)
		}
		want := map[string][]string{
			"a": {"discovering", "awaiting_consent", "exchanging", "connected"},
			"b": {"discovering", "awaiting_consent", "failed: the login was denied"},
			"c": {"discovering", "awaiting_consent", "failed: the login was not finished in time"},
		}
		if diff := cmp.Diff(want, phases(t, sub)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestExpiryTellsTheLastTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(map[string]script{"a": {complete: func(context.Context) error { return auth.ErrUnavailable }}})
		d := newDriver(t, e, nil)
		_, _ = d.Complete(t.Context(), begin(t, d, "a")[0], code("c"), "")
		if err := d.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if row := one(t, d); row.Detail != "the login was not finished in time; last try: not possible right now" {
			t.Errorf("detail %q", row.Detail)
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(nil)
		d := newDriver(t, e, nil)
		sub := d.Subscribe()
		state := begin(t, d, "a")[0]
		for _, s := range []string{state, state, "nobody's"} {
			if err := d.Cancel(t.Context(), s); err != nil {
				t.Errorf("cancel %q: %v", s, err)
			}
		}
		synctest.Wait()
		if diff := cmp.Diff(map[string][]string{"a": {"discovering", "awaiting_consent", "failed: cancelled"}}, phases(t, sub)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if _, err := d.Complete(t.Context(), state, code("c"), ""); !errors.Is(err, auth.ErrUnknownState) || len(e.trades()) != 0 {
			t.Errorf("afterwards: %v, trades %v", err, e.trades())
		}
	})
}

func TestPaste(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newScripted(nil)
		d := newDriver(t, e, nil)
		states := begin(t, d, "a", "b", "c")
		address := func(i int) string {
			return "http://127.0.0.1:1/callback?code=code-" + states[i] + "&state=" + states[i]
		}
		bad := map[string][2]string{
			"nonsense":              {"", "what do I do?"},
			"which one":             {"", "bare-code"},
			"that of another":       {states[1], address(0)},
			"somebody else's":       {"", "http://127.0.0.1:1/callback?code=c&state=x"},
			"the page, not the end": {"", "https://as.example/authorize?response_type=code&state=" + states[0]},
		}
		for name, p := range bad {
			if _, err := d.Paste(t.Context(), p[0], p[1]); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if len(e.trades()) != 0 || d.Pending() != 3 {
			t.Fatalf("bad pastes traded %v, %d pending", e.trades(), d.Pending())
		}
		for _, p := range [][2]string{{"", address(2)}, {states[1], "bare-code"}, {"", "only-one-left"}} {
			if _, err := d.Paste(t.Context(), p[0], p[1]); err != nil {
				t.Errorf("paste %q: %v", p[1], err)
			}
		}
		if diff := cmp.Diff([]string{"c code-" + states[2], "b bare-code", "a only-one-left"}, e.trades()); diff != "" {
			t.Errorf("trades (-want +got):\n%s", diff)
		}
	})
}
