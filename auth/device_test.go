package auth

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/internal/fake"
)

func (w *world) beginDevice() *Pending {
	w.t.Helper()
	p, err := w.e.BeginDevice(w.t.Context(), w.a, w.srv, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

const deviceGrant = oauth.GrantTypeDevice

// gaps returns the time between the polls that the server saw.
func (w *world) gaps() []time.Duration {
	var out []time.Duration
	polls := w.as.Requests(fake.EventToken, deviceGrant)
	for i := 1; i < len(polls); i++ {
		out = append(out, polls[i].Time.Sub(polls[i-1].Time))
	}
	return out
}

func TestDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, &fake.Protected{Challenge: "read"})
		start := time.Now()
		p := w.beginDevice()
		if p.Device.UserCode != "WDJB-MJHT" || p.Device.VerificationURI != "https://as.example/activate" || p.Device.Complete == "" || p.Device.Interval != 5*time.Second {
			t.Errorf("device %+v", p.Device)
		}
		if e := w.as.Requests(fake.EventDevice, "")[0]; e.Param("resource") != mcpURL || e.Param("scope") != "read" {
			t.Errorf("device request %s", e.Params)
		}
		go func() {
			time.Sleep(32 * time.Second)
			w.as.Decide(true)
		}()
		l, err := w.e.PollDevice(t.Context(), p.State)
		if err != nil || l.Flow != FlowDevice || time.Since(start) != 35*time.Second {
			t.Errorf("login %+v, %v after %v", l, err, time.Since(start))
		}
		for _, gap := range w.gaps() {
			if gap != 5*time.Second {
				t.Errorf("polls %v apart", gap)
			}
		}
		w.mustCall()
	})
}

// slow_down adds five seconds each time; failures of the server end nothing.
func TestDevicePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		p := w.beginDevice()
		w.as.Set("slow-down;times=2")
		go func() {
			time.Sleep(40 * time.Second)
			w.as.Set("token-status=503;times=2;on=" + deviceGrant)
			time.Sleep(40 * time.Second)
			w.as.Set("drop-before;times=1;on=" + deviceGrant)
			w.as.Decide(true)
		}()
		if _, err := w.e.PollDevice(t.Context(), p.State); err != nil {
			t.Fatal(err)
		}
		gaps := w.gaps()
		want := []time.Duration{10 * time.Second, 15 * time.Second}
		for i, gap := range gaps {
			if i < len(want) && gap != want[i] || i >= len(want) && gap != 15*time.Second {
				t.Errorf("gap %d is %v", i, gap)
			}
		}
	})
}

func TestDeviceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		p := w.beginDevice()
		w.as.Decide(false)
		_, err := w.e.PollDevice(t.Context(), p.State)
		wantErr(t, err, ErrDenied, "access_denied")

		p = w.beginDevice()
		_, err = w.e.PollDevice(t.Context(), p.State)
		wantErr(t, err, ErrExpired, "ask for a new code")

		p = w.beginDevice()
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		_, err = w.e.PollDevice(ctx, p.State)
		wantErr(t, err, context.DeadlineExceeded)
		before := w.tokens(deviceGrant)
		time.Sleep(time.Hour)
		if n := w.tokens(deviceGrant) - before; n != 0 {
			t.Errorf("%d polls after the end", n)
		}
	})
}

// Starting again replaces the older poll; a code that has been given up is not
// polled for.
func TestDeviceReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		first := w.beginDevice()
		done := make(chan error, 1)
		go func() {
			_, err := w.e.PollDevice(t.Context(), first.State)
			done <- err
		}()
		time.Sleep(7 * time.Second)
		second := w.beginDevice()
		go func() {
			time.Sleep(10 * time.Second)
			w.as.Decide(true)
		}()
		if _, err := w.e.PollDevice(t.Context(), second.State); err != nil {
			t.Error(err)
		}
		wantErr(t, <-done, ErrReplaced)
	})
}

// The login may be followed from another process.
func TestDeviceElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		p := w.beginDevice()
		w.as.Decide(true)
		other := New(w.store, &Options{RoundTripper: w.net})
		defer func() { _ = other.Close() }()
		if _, err := other.PollDevice(t.Context(), p.State); err != nil {
			t.Error(err)
		}
		w.mustCall()
	})
}

// A client that the server has forgotten is registered once more.
func TestDeviceWithForgottenClient(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.beginDevice()
	w.as.ForgetClients()
	w.beginDevice()
	if n := len(w.as.Requests(fake.EventRegister, "")); n != 2 {
		t.Errorf("%d registrations", n)
	}
	w.as.Set("no-device")
	_, err := w.e.BeginDevice(t.Context(), w.a, w.srv, nil)
	wantErr(t, err, ErrNoFlow, "device_authorization_endpoint")
}
